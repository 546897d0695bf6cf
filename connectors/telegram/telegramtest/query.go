package telegramtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// query is the parameters of a call as the Bot API reads them, wherever they came from: texts, JSON in texts, files.
type query struct {
	values map[string]string
	files  map[string]upload
}

// upload is a file within a request.
type upload struct {
	name, mime string
	bytes      []byte
}

// readQuery takes parameters from the address, a form, a multipart form and JSON, the later before the earlier.
func readQuery(r *http.Request) (*query, error) {
	q := &query{values: map[string]string{}, files: map[string]upload{}}
	q.add(r.URL.Query())
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		err := q.addParts(multipart.NewReader(r.Body, parameters["boundary"]))
		_, _ = io.Copy(io.Discard, r.Body) // to its end, without which a client's going is not noticed
		return q, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("can't parse request: %w", err)
		}
		q.add(form)
	case "application/json":
		return q, q.addJSON(body)
	}
	return q, nil
}

func (q *query) add(form url.Values) {
	for name, values := range form {
		q.values[name] = values[0]
	}
}

func (q *query) addJSON(body []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("can't parse request: %w", err)
	}
	for name, value := range fields {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		q.values[name] = text
	}
	return nil
}

func (q *query) addParts(parts *multipart.Reader) error {
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("can't parse request: %w", err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return fmt.Errorf("can't parse request: %w", err)
		}
		if part.FileName() == "" {
			q.values[part.FormName()] = string(body)
			continue
		}
		q.files[part.FormName()] = upload{part.FileName(), part.Header.Get("Content-Type"), body}
	}
}

// integer is a whole number, or otherwise where there is none.
func (q *query) integer(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(q.values[name]), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// within is a whole number held between two others.
func (q *query) within(name string, otherwise, low, high int64) int {
	return int(min(max(q.integer(name, otherwise), low), high))
}

// flag is a yes or no as the Bot API takes it.
func (q *query) flag(name string) bool {
	yes, _ := isFlag(q.values[name])
	return yes
}

func isFlag(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0", "":
		return false, true
	}
	return false, false
}

// decode reads JSON in a parameter into what to points at, and reports whether there was any.
func (q *query) decode(name string, to any) (bool, error) {
	text := q.values[name]
	if text == "" || text == "null" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(text), to)
}

// file is the document in a parameter: a part of its name, or one named by attach://NAME.
func (q *query) file(name string) (upload, bool) {
	if part, ok := strings.CutPrefix(q.values[name], "attach://"); ok {
		name = part
	}
	u, ok := q.files[name]
	return u, ok
}
