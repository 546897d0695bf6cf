// Package permissions is the meaning of daycared: what is asked, who answered, what was decided and what that
// decision grants. It imports nothing of ours and does no I/O of its own.
//
// A [Request] is one question that an agent puts to people and waits on. A [Vote] is one person's answer to it. [Step]
// is the life of a request: a pure and total function from a request and an [Event] to a [Change], which is everything
// that the event does (the row after, the votes, the grants, the audit records). A [Grant] is what a [Scope] wider than
// once leaves behind, and [Policy] says what needs asking at all.
//
// [Registry] keeps those who wait. The row is the truth and a waiter is a doorbell: the registry registers the waiter,
// lets the [Store] insert the row, and rings when a change has been committed. Anything in doubt is not granted.
package permissions
