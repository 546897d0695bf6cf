package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// results are what benchmarks printed.
type results struct {
	machine map[string]string // what was said of it
	lines   []*benchfmt.Result
}

// read takes the results out of the output of go test.
func read(from io.Reader, name string) (results, error) {
	all := results{machine: map[string]string{}}
	in := benchfmt.NewReader(from, name)
	for in.Scan() {
		switch r := in.Result().(type) {
		case *benchfmt.Result:
			all.lines = append(all.lines, r.Clone())
			for _, key := range machineKeys {
				if value := r.GetConfig(key); value != "" {
					all.machine[key] = value
				}
			}
		case *benchfmt.SyntaxError:
			return all, fmt.Errorf("read the output of the benchmarks: %w", r)
		}
	}
	if err := in.Err(); err != nil {
		return all, fmt.Errorf("read the output of the benchmarks: %w", err)
	}
	return all, nil
}

// figure is what came of a goal.
type figure struct {
	goal
	least, middle, most float64
	many                float64 // how many things the sum is of
}

// met reports whether the goal was reached, by the middle of the lines or by the sum.
func (f figure) met() bool {
	if f.atLeast {
		return f.middle >= f.limit
	}
	return f.middle <= f.limit
}

// figure finds the figures of a goal. A benchmark that is not there, or says nothing of it, is an error.
func (all results) figure(g goal) (figure, error) {
	f, values := figure{goal: g}, []float64(nil)
	for _, r := range all.lines {
		if !is(r, g.bench) {
			continue
		}
		line := 0.0
		for _, unit := range g.units {
			v, ok := valueOf(r, unit)
			if !ok {
				return f, fmt.Errorf("%s: Benchmark%s reports no %s", g.id, g.bench, unit)
			}
			line += v
		}
		values = append(values, line)
		if g.of != "" {
			many, ok := valueOf(r, g.of)
			if !ok {
				return f, fmt.Errorf("%s: Benchmark%s reports no %s", g.id, g.bench, g.of)
			}
			f.many += many
		}
	}
	if len(values) == 0 {
		return f, fmt.Errorf("%s: Benchmark%s was not run", g.id, g.bench)
	}
	slices.Sort(values)
	f.least, f.middle, f.most = values[0], values[len(values)/2], values[len(values)-1]
	if g.sum {
		f.middle = 0
		for _, v := range values {
			f.middle += v
		}
		f.least, f.most = f.middle, f.middle
	}
	return f, nil
}

// figures are those of every goal, by its number; the first that is missing is an error.
func (all results) figures(list []measurement) ([]figure, error) {
	var found []figure
	for _, m := range list {
		for _, g := range m.goals {
			f, err := all.figure(g)
			if err != nil {
				return nil, err
			}
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b figure) int { return number(a.id) - number(b.id) })
	return found, nil
}

func number(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "P"))
	return n
}

// is reports whether a line is of that benchmark, on whatever number of processors.
func is(r *benchfmt.Result, bench string) bool {
	rest, found := strings.CutPrefix(r.Name.String(), bench)
	if !found || rest == "" {
		return found
	}
	processors, found := strings.CutPrefix(rest, "-")
	_, err := strconv.Atoi(processors)
	return found && err == nil
}

// valueOf is a figure of a line by the unit that the benchmark gave it, which the reader may have made another of.
func valueOf(r *benchfmt.Result, unit string) (float64, bool) {
	for _, v := range r.Values {
		switch unit {
		case v.OrigUnit:
			return v.OrigValue, true
		case v.Unit:
			return v.Value, true
		}
	}
	return 0, false
}
