// Package connect knows where the agents that people already run keep their settings, and what has to stand there so that
// they ask daycared: an MCP server, and hooks with timeouts that are longer than daycared's own and with the flags that
// deny where a hook fails.
//
// An [Agent] has [File]s. A file is changed as text, and purely: [File.Install] and [File.Remove] take what it holds and
// give what it is to hold, keeping the person's own settings, their order and their comments. What is ours is recognised
// by its name, so that installing twice changes nothing and removing takes out what was installed.
package connect
