package sandbox

// Promise is one thing that the walls are to hold.
type Promise struct {
	Name  string // in words
	Holds bool   // on this kernel
	Why   string // what is missing where it does not hold
}

// The promises, as people are told them.
const (
	promiseFiles   = "no file outside"
	promiseTCP     = "no TCP without the network"
	promiseSockets = "no UDP and no unix socket"
	promiseSignals = "no signal to others"
)
