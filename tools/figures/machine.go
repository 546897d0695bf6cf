package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machineKeys are what is told of the machine: the first three by this program, the others by go test.
var machineKeys = []string{"cores", "go", "disk", "goos", "goarch", "cpu"}

// machine tells the processors, the version of Go, and the disk on which the benchmarks write, in the form in which
// benchmarks are configured.
func machine() ([]string, error) {
	sync, err := syncTime(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("measure the disk: %w", err)
	}
	return []string{
		"cores: " + strconv.Itoa(runtime.NumCPU()),
		"go: " + runtime.Version(),
		fmt.Sprintf("disk: %s, where 4 KB written over and synced take %.2g ms", fileSystem(os.TempDir()), sync.Seconds()*1000),
	}, nil
}

// syncTime is the middle of what a write of 4 KB over what was there takes, with the sync to disk.
func syncTime(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "figures")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []time.Duration
	for range 201 {
		began := time.Now()
		if _, err := file.WriteAt(make([]byte, 4096), 0); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// fileSystem is the kind of the file system that a folder is on, as Linux tells it.
func fileSystem(dir string) string {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return "a disk"
	}
	defer file.Close()
	kind, longest := "a disk", -1
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		below, err := filepath.Rel(fields[1], dir)
		if err == nil && below != ".." && !strings.HasPrefix(below, "../") && len(fields[1]) > longest {
			kind, longest = fields[2], len(fields[1])
		}
	}
	return kind
}
