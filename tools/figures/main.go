package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := figures(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// options are what the command is told.
type options struct {
	root      string
	from      string
	keep      string
	write     bool
	decisions int
}

// figures runs the benchmarks, or reads what they printed before, and shows what came of it.
func figures(ctx context.Context, args []string, out, say io.Writer) error {
	var o options
	flags := flag.NewFlagSet("figures", flag.ContinueOnError)
	flags.SetOutput(say)
	flags.StringVar(&o.root, "root", "../..", "the module whose benchmarks these are")
	flags.StringVar(&o.from, "from", "", "read what was kept in this file, and run nothing")
	flags.StringVar(&o.keep, "keep", "", "keep what the benchmarks print in this file")
	flags.BoolVar(&o.write, "write", false, "write the table of docs/performance.md and docs/performance.svg")
	flags.IntVar(&o.decisions, "decisions", 1_000_000, "how many are decided at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.decisions < 1 {
		return fmt.Errorf("-decisions is %d, and has to be 1 or more", o.decisions)
	}
	list := measurements(o.decisions)
	all, err := o.results(ctx, list, say)
	if err != nil {
		return err
	}
	found, err := all.figures(list)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, about(all.machine))
	if err := text(out, found); err != nil || !o.write {
		return err
	}
	return o.publish(all.machine, found)
}

// results are measured, and kept even when not all of it could be, or were kept before.
func (o options) results(ctx context.Context, list []measurement, say io.Writer) (results, error) {
	if o.from != "" {
		file, err := os.Open(o.from)
		if err != nil {
			return results{}, fmt.Errorf("read what was kept: %w", err)
		}
		defer file.Close()
		return read(file, o.from)
	}
	output, failed := run(ctx, o.root, list, say)
	if o.keep != "" {
		if err := os.MkdirAll(filepath.Dir(o.keep), 0o755); err != nil { //nolint:gosec // it is no secret
			return results{}, fmt.Errorf("keep the output of the benchmarks: %w", err)
		}
		if err := os.WriteFile(o.keep, output, 0o644); err != nil { //nolint:gosec // as above
			return results{}, fmt.Errorf("keep the output of the benchmarks: %w", err)
		}
	}
	if failed != nil {
		return results{}, failed
	}
	return read(bytes.NewReader(output), "the benchmarks")
}

// publish writes what people read.
func (o options) publish(machine map[string]string, all []figure) error {
	folder := filepath.Join(o.root, "docs")
	path := filepath.Join(folder, "performance.md")
	page, err := os.ReadFile(path) //nolint:gosec // the operator named it
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	if page, err = replace(page, section(machine, all)); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	for name, text := range map[string][]byte{path: page, filepath.Join(folder, "performance.svg"): []byte(picture(all))} {
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // everybody may read them
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	return nil
}
