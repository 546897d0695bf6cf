package sandbox

// callsHere are cases of calls that newer machines have not.
var callsHere []callCase
