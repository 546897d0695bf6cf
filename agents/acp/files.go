package acp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/daycared/daycared/permissions"
)

// readFile is fs/read_text_file.
func (c *client) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	in, err := decode[sdk.ReadTextFileRequest](params)
	if err != nil {
		return nil, err
	}
	t, err := c.begun(in.SessionId)
	if err != nil {
		return nil, err
	}
	ctx, done := t.during(ctx)
	defer done()
	input := map[string]any{"path": in.Path}
	if in.Line != nil {
		input["offset"] = *in.Line
	}
	if in.Limit != nil {
		input["limit"] = *in.Limit
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	o, err := c.use(ctx, t, c.tools.read, text, nil)
	if err == nil && o.Error {
		err = errors.New(o.Text)
	}
	return sdk.ReadTextFileResponse{Content: o.Text}, err
}

// writeFile is fs/write_text_file.
func (c *client) writeFile(ctx context.Context, params json.RawMessage) (any, error) {
	in, err := decode[sdk.WriteTextFileRequest](params)
	if err != nil {
		return nil, err
	}
	t, err := c.begun(in.SessionId)
	if err != nil {
		return nil, err
	}
	ctx, done := t.during(ctx)
	defer done()
	text, err := marshal(map[string]any{"path": in.Path, "content": in.Content})
	if err != nil {
		return nil, err
	}
	o, err := c.use(ctx, t, c.tools.write, text, nil)
	if err == nil && o.Error {
		err = errors.New(o.Text)
	}
	return sdk.WriteTextFileResponse{}, err
}

// marshal writes an input in its one form.
func marshal(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return permissions.CanonicalJSON(text)
}
