package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// This file is the tests' MCP server: the test binary, executed again.

const (
	modeEnv   = "DAYCARED_TEST_MCP"    // its behaviour
	placeEnv  = "DAYCARED_TEST_FOLDER" // paths of:
	aboutName = "about"                // a file with the description of its tool echo
	keptName  = "kept"                 // a pipe that is open until it and its descendants are gone
	lastWords = "I am the server of a test"
)

var kept *os.File // stays open: an unused one would be closed

func serveTest(mode string) int {
	var err error
	if kept, err = os.OpenFile(filepath.Join(os.Getenv(placeEnv), keptName), os.O_WRONLY, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 5
	}
	fmt.Fprintln(os.Stderr, lastWords)
	switch mode {
	case "dead":
		fmt.Fprint(os.Stderr, "there is no \x1bconfiguration\n\n")
		return 3
	case "noise":
		fmt.Fprintln(os.Stdout, "hello, I am no MCP server")
		return wait()
	case "mute":
		_, _ = kept.WriteString("mute\n") // the test waits for it
		return wait()
	case "child":
		return wait()
	case "asks": // it reads no answers
		for i := range 50_000 {
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
		}
		return wait()
	}
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: pageSize(mode)})
	for name, handle := range handlers {
		schema := `{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer"}},"additionalProperties":false}`
		switch {
		case name == "echo" && mode == "odd schema":
			schema = `{"type":"object","properties":{"text":{"$ref":"https://example.com/elsewhere"}}}`
		case name == "plain":
			schema = `{"type":"object"}`
		}
		server.AddTool(&mcp.Tool{Name: name, Title: "The " + name, InputSchema: json.RawMessage(schema)}, handle)
	}
	if mode == "many" {
		for i := range 200 {
			server.AddTool(&mcp.Tool{Name: fmt.Sprint("zz", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, handlers["echo"])
		}
		huge := `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`
		server.AddTool(&mcp.Tool{Name: "aa-huge", InputSchema: json.RawMessage(huge)}, handlers["echo"])
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if ask, ok := r.(*mcp.ListToolsRequest); ok && mode == "endless" {
				ask.Params.Cursor = ""
			}
			result, err := next(ctx, method, r)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				if mode == "listless" {
					<-ctx.Done()
				}
				list = describe(list, mode)
				return list, err
			}
			return result, err
		}
	})
	_ = server.Run(ctx, &mcp.IOTransport{Reader: os.Stdin, Writer: ambiguous{os.Stdout, mode}}) // until its input ends
	if mode == "stays" {
		return wait()
	}
	return 0
}

// ambiguous makes the answers to calls ambiguous, in the modes for that.
type ambiguous struct {
	*os.File
	mode string
}

func (a ambiguous) Write(line []byte) (int, error) {
	changed := line
	switch a.mode {
	case "a member twice":
		changed = bytes.Replace(line, []byte(`"content":`), []byte(`"content":[],"content":`), 1)
	case "a member in other letters":
		changed = bytes.Replace(line, []byte(`"result":{"content":`), []byte(`"result":{},"Result":{"content":`), 1)
	}
	_, err := a.File.Write(changed)
	return len(line), err
}

func pageSize(mode string) int {
	if mode == "many" {
		return 1000
	}
	return 3
}

// describe describes echo with the current content of a file.
func describe(list *mcp.ListToolsResult, mode string) *mcp.ListToolsResult {
	about, err := os.ReadFile(filepath.Join(os.Getenv(placeEnv), aboutName))
	for i, t := range list.Tools {
		switch {
		case err == nil && t.Name == "echo" && string(about) == "gone":
			list.Tools = append(list.Tools[:i:i], list.Tools[i+1:]...)
			return list
		case err == nil && t.Name == "echo":
			said := *t
			said.Description = string(about)
			list.Tools[i] = &said
		}
	}
	if mode == "twice" {
		list.Tools = append(list.Tools, list.Tools...)
	}
	if mode == "endless" {
		list.NextCursor = "more"
	}
	return list
}

// wait waits until it is killed.
func wait() int {
	<-time.After(10 * time.Minute)
	return 0
}

var handlers = map[string]mcp.ToolHandler{
	"echo": func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says(string(r.Params.Arguments)), nil
	},
	"plain": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	},
	"giant": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says("BEGIN" + strings.Repeat("é", 1<<20) + "END"), nil
	},
	"monster": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says(strings.Repeat("x", maxLine+1)), nil
	},
	"crash": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		os.Exit(4)
		return nil, nil
	},
	"hang": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, _ = kept.WriteString("hangs\n") // the test waits for it
		wait()
		return nil, ctx.Err()
	},
	"fail": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such thing"}}}, nil
	},
	"refuse": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("I refuse\x1b[31m to do it")
	},
	"mute-failure": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true}, nil
	},
	"parts": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "text"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("123")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("1")}, &mcp.ResourceLink{URI: "file:///a", Name: "a"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", Text: "inside"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", Blob: []byte("12")}},
		}}, nil
	},
	"structured": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}}, nil
	},
	"bad.name": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return says("dot"), nil },
	"bad/name": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return says("slash"), nil },
	strings.Repeat("long", 25): func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says("long"), nil
	},
	"asks": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, roots := r.Session.ListRoots(ctx, nil)                                         //nolint:staticcheck // servers still do
		words := &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{ //nolint:staticcheck // servers still do
			{Role: "user", Content: &mcp.TextContent{Text: "give me words"}}}}
		_, sampled := r.Session.CreateMessage(ctx, words) //nolint:staticcheck // servers still do
		_, asked := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "the password?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		return says(fmt.Sprintf("roots: %v\nsampling: %v\nelicitation: %v", roots != nil, sampled != nil, asked != nil)), nil
	},
	"breeds": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), modeEnv+"=child")
		child.Stdout, child.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true} // leaves the group
		heard, err := child.StderrPipe()
		if err != nil {
			return nil, err
		}
		if err := child.Start(); err != nil {
			return nil, err
		}
		_, err = io.ReadFull(heard, make([]byte, len(lastWords))) // holds the pipe now
		return says("a child"), err
	},
}

func says(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
