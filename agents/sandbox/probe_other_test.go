//go:build !linux

package sandbox

import "errors"

func probe(string, []string) error { return errors.New("there are no walls to try here") }
