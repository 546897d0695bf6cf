// Package provider is what the providers of models have in common, whatever they speak: how they are reached, when a
// request is tried again, and what their errors mean.
//
// The libraries of the providers write requests and read replies. They neither send nor try again by themselves: they
// follow redirects, one of them waits as long as it is told to, and the texts of their errors may hold addresses. So each
// try is an [Exchange] of ours: no redirect is followed, silence and length are bounded, what is no success is a *[Fault]
// that we have read ourselves, and [Link.Try] tells which fault passes by itself and when.
package provider
