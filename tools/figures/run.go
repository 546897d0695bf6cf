package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// run runs every measurement in the module at root, tells say how far it is, and returns all that go test
// printed.
func run(ctx context.Context, root string, list []measurement, say io.Writer) ([]byte, error) {
	var output bytes.Buffer
	about, err := machine()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(&output, strings.Join(about, "\n"))
	began := time.Now()
	for i, m := range list {
		fmt.Fprintf(say, "[%d of %d, %s] %s %s, %d times\n", i+1, len(list), time.Since(began).Round(time.Second), m.pkg, m.bench, m.count)
		if err := m.run(ctx, root, &output, say); err != nil {
			return output.Bytes(), err
		}
	}
	fmt.Fprintf(say, "measured in %s\n", time.Since(began).Round(time.Second))
	return output.Bytes(), nil
}

// run runs one.
func (m measurement) run(ctx context.Context, root string, output *bytes.Buffer, say io.Writer) error {
	test := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark"+m.bench, //nolint:gosec // of the list
		"-benchtime", m.time, "-count", strconv.Itoa(m.count), "-timeout", "6h", m.pkg)
	test.Dir, test.Env = root, append(os.Environ(), m.env...)
	out, err := test.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run the benchmarks of %s: %w", m.pkg, err)
	}
	test.Stderr = test.Stdout
	if err := test.Start(); err != nil {
		return fmt.Errorf("run the benchmarks of %s: %w", m.pkg, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(output, lines.Text())
		fmt.Fprintln(say, "  "+lines.Text())
	}
	if err := test.Wait(); err != nil {
		return fmt.Errorf("run Benchmark%s of %s: %w", m.bench, m.pkg, err)
	}
	return lines.Err()
}
