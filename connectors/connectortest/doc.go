// Package connectortest holds what a connector is measured by. [Run] is the suite that every connector passes: it sends
// each kind of request, lets the person at the other end answer in every way, and looks at what reaches the handler and
// what the person gets to see, whatever the channel is made of. [Memory] is a connector without a channel, with
// scripted people who tap or write, for tests of whatever stands behind the connectors.
//
// The suite's handler keeps real rows and settles them with permissions.Step, so a connector is refused for the reasons
// for which it would be refused in earnest.
package connectortest
