// Package config is the configuration: its keys, its defaults, and where each value in force came from.
//
// The struct [Config] is the one source of the keys; keys.go reads it. [Load] goes three steps. syntax.go and check.go
// read the file as a tree of YAML nodes and hold it strictly against the keys, since only the tree still knows lines,
// exact case, duplicates and what was written without quotes. load.go lets viper lay the checked values over the
// defaults, and the environment over both; viper sees nothing unchecked, because it would drop case, turn +49… into a
// number and ignore what it does not know. rules.go and routes.go then ask whether the values make sense together, and
// warn.go says what is allowed but hardly meant.
//
// Nothing is lost silently: what is wrong is collected and reported together ([Problems]), each with its line or
// variable and with what would be right. A key that a later version brings is refused as such, not as unknown.
//
// [Find] says which file to load, [Config.Paths] where the sockets and the data are, and [Config.Show] prints what is
// in force as YAML that [Load] takes again.
package config
