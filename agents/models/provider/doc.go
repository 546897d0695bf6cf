// Package provider is what the providers of models have in common, whatever they speak: how they are reached, when a
// request is tried again, and what their errors mean.
//
// A library may write the requests of a dialect, but none sends or reads one: they follow redirects, wait as long as they
// are told to, count comments as errors, and put addresses into the texts of errors. So each try is an [Exchange] of ours:
// no redirect is followed, silence and length are bounded, the events are read as odd as servers write them, what is no
// success is a *[Fault] that we have read ourselves, and [Link.Try] knows which fault passes by itself and when.
package provider
