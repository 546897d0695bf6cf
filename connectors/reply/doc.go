// Package reply is the way from what a person typed to an answer. It is pure, and strict on purpose: a line is either
// wholly one of the forms that [Hint] and [Help] name, in any case, or it decides nothing and the person is told what
// would be right. Guessing what somebody meant is how "don't allow" becomes an approval.
//
// The forms: `y`, with a scope, the number of one call, or the code; `a` for this session; `n`, with a reason after
// because; `r` and a reason; Enter, `i` or Esc at a pause; a number or the option's own words at a clarification.
package reply
