package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts have people in them, who sit at consoles, read and type:
//
//	sit NAME COMMAND…     a command with a terminal of its own
//	pipe NAME COMMAND…    a command whose standard input is an open pipe
//	start NAME COMMAND…   a command without a console
//	shows NAME REGEXP     wait until it has said that, after what was awaited last
//	types NAME TEXT       type at it; \r, \x1b and the like are as in Go
//	closes NAME           take its keyboard away
//	sends NAME SIGNAL     HUP, INT, TERM or KILL
//	ends NAME CODE        it ends, with that exit code, and leaves no process behind; a signal's name for a code if it
//	                      died of that
//	screen NAME           write all that it has said to the file NAME.screen

// peopleCmds are these commands.
func peopleCmds() map[string]func(*testscript.TestScript, bool, []string) {
	begin := func(how func(*testing.T, *actor) error) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, _ bool, args []string) { begin(ts, args, how) }
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"sit":    begin((*actor).atTerminal),
		"pipe":   begin((*actor).atPipe),
		"start":  begin((*actor).withoutConsole),
		"shows":  shows,
		"types":  types,
		"closes": closes,
		"sends":  sends,
		"ends":   ends,
		"screen": screenFile,
	}
}
