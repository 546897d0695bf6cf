// Package admin is the door of those who decide: HTTP on admin.sock, for the command line and for an inbox in another
// terminal, and the client that speaks to it.
//
// Who calls is the account at the other end of the socket. The account that runs the daemon, and root, may also present
// the admin key, and are the operator then. Everybody else is the person whose account it is, sees what was put to them
// and decides that. What an identity may do is the business of the [Desk]; this door only proves it.
//
// As a connector it pushes nothing: whoever has an inbox open follows the stream of changes, is told notices in it, and
// counts as reachable while they do. What their agents say comes in it, too, and waits while there is none; they write to
// them by routes of their own. The events are another stream, read from the audit in the order of commits: its
// reader names the last one that it has and goes on from there.
package admin
