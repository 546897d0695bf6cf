package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is what a request may weigh, in bytes: a document of 50 MB and what is around it.
const maxBody = 51 << 20

// method is one method of the Bot API: its name as the documentation spells it, and what it does.
type method struct {
	name string
	run  func(*Server, context.Context, *query) (any, *failure)
}

// object is a JSON object on its way out.
type object = map[string]any

// failure is a refusal of the Bot API.
type failure struct {
	code        int
	description string
	retryAfter  int   // seconds
	migrateTo   int64 // chat
}

func badRequest(format string, args ...any) *failure {
	return &failure{code: http.StatusBadRequest, description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *failure {
	return &failure{code: http.StatusForbidden, description: "Forbidden: " + text}
}

// serve answers one HTTP request.
func (s *Server) serve(e *era, w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	path, file := strings.CutPrefix(r.URL.Path, "/file")
	rest, ok := strings.CutPrefix(path, "/bot")
	token, name, found := strings.Cut(rest, "/")
	switch {
	case !ok || !found || !tokenForm.MatchString(token):
		write(w, nil, &failure{code: http.StatusNotFound, description: "Not Found"})
	case token != s.token:
		write(w, nil, &failure{code: http.StatusUnauthorized, description: "Unauthorized"})
	case file:
		s.download(w, name)
	default:
		s.call(e, w, r, name)
	}
}

// call answers a call of a method, or fails as it was told to.
func (s *Server) call(e *era, w http.ResponseWriter, r *http.Request, name string) {
	q, err := readQuery(r)
	m, known := s.methods[strings.ToLower(name)]
	switch {
	case err != nil && r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	case err != nil:
		write(w, nil, badRequest("%v", err))
		return
	case !known:
		s.refuse(s.begin(name, q, Fault{}), &failure{code: http.StatusNotFound, description: "Not Found"}, w)
		return
	}
	invalid := s.schema.request(m.name, q)
	s.mu.Lock()
	fault := s.faults.next(m.name)
	if invalid != nil {
		s.violate(m.name+" request", invalid.Error())
	}
	s.mu.Unlock()
	n := s.begin(m.name, q, fault)
	if s.fail(e, fault, n, w, r) {
		return
	}
	result, refused := m.run(s, r.Context(), q)
	if fault.kind == late {
		select {
		case <-fault.until:
		case <-r.Context().Done():
		}
	}
	if r.Context().Err() != nil { // nobody listens
		s.end(n, 0, "")
		panic(http.ErrAbortHandler)
	}
	if fault.kind == replyLost {
		s.end(n, 0, "")
		e.reset(w)
		return
	}
	if refused != nil {
		s.refuse(n, refused, w)
		return
	}
	s.answer(n, m.name, result, w)
}

// refuse notes and writes a refusal of the n-th call.
func (s *Server) refuse(n int, refused *failure, w http.ResponseWriter) {
	s.end(n, refused.code, refused.description)
	write(w, nil, refused)
}

// answer validates, notes and writes the result of the n-th call.
func (s *Server) answer(n int, method string, result any, w http.ResponseWriter) {
	text, err := json.Marshal(result)
	if err != nil {
		panic(fmt.Sprintf("a result is no JSON: %v", err))
	}
	if method != "getUpdates" { // updates were validated when they were made
		if invalid := s.schema.result(method, text); invalid != nil {
			s.mu.Lock()
			s.violate(method+" result", invalid.Error())
			s.mu.Unlock()
		}
	}
	s.end(n, http.StatusOK, "")
	write(w, text, nil)
}

// write writes an answer as the Bot API does, refusals with their code as the status.
func write(w http.ResponseWriter, result json.RawMessage, refused *failure) {
	answer, status := object{"ok": true, "result": result}, http.StatusOK
	if refused != nil {
		status = refused.code
		answer = object{"ok": false, "error_code": refused.code, "description": refused.description}
		parameters := object{}
		if refused.retryAfter > 0 {
			parameters["retry_after"] = refused.retryAfter
			w.Header().Set("Retry-After", strconv.Itoa(refused.retryAfter))
		}
		if refused.migrateTo != 0 {
			parameters["migrate_to_chat_id"] = refused.migrateTo
		}
		if len(parameters) > 0 {
			answer["parameters"] = parameters
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("an answer is no JSON: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// page writes what a proxy in front of the Bot API writes when it is in trouble.
func page(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	_, _ = io.WriteString(w, "<html>\r\n<head><title>"+title+"</title></head>\r\n<body>\r\n<center><h1>"+title+
		"</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n")
}
