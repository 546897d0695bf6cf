package sandbox

// callsHere are cases of calls that newer architectures lack.
var callsHere []callCase
