package tools

import (
	"encoding/json"
	"fmt"

	"github.com/daycared/daycared/agents/sandbox"
)

// All are the tools that touch files, run commands and fetch pages, held by the walls of s.
func All(s *sandbox.Sandbox) []Tool {
	return []Tool{
		readFile{s}, listFiles{s}, searchFiles{s}, writeFile{s}, editFile{s}, runCommand{s}, fetchURL{},
	}
}

// The names of what runs behind walls in a process of its own.
const (
	opContent = "tools.content"
	opLines   = "tools.lines"
	opList    = "tools.list"
	opSearch  = "tools.search"
	opPut     = "tools.put"
)

// Operations are what tools run behind walls; [sandbox.Main] has to know them.
func Operations() map[string]sandbox.Operation {
	return map[string]sandbox.Operation{
		opContent: operation(content), opLines: operation(lines), opList: operation(list), opSearch: operation(search),
		opPut: operation(put),
	}
}

// operation makes a function one that runs in another process.
func operation[In, Out any](do func(In) (Out, error)) sandbox.Operation {
	return func(input json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("read what is to be done: %w", err)
		}
		return do(in)
	}
}
