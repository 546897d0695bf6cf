package main

import (
	"errors"
	"os"
	"syscall"
)

var errNoFile = errors.New("it is not a regular file")

// openFile opens a regular file for reading, and nothing that could keep whoever opens or reads it waiting. The errors
// do not name it.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(cause(err), f.Close())
	}
	return f, nil
}

// cause is an error without the path, which has been told.
func cause(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
