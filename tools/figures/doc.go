// Command figures runs the benchmarks that docs/performance.md lists, each beside the least that the same machine does for the
// same work, and makes of what they report a table of ratios, the section of that page, and its picture.
//
// goals.go is the list: what is measured, where, and what it has to reach. run.go runs go test and keeps every line of
// it, after some about the machine (machine.go), in the format of Go's benchmarks. read.go takes the figures out of that,
// and it is the same whether they were measured just now or kept. table.go and picture.go show them.
package main
