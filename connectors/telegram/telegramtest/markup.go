package telegramtest

import (
	"encoding/json"
	"slices"
	"strings"
)

// The limits of keyboards.
const (
	maxData        = 64 // bytes of callback_data
	maxButtons     = 100
	maxCopy        = 256 // UTF-16 code units
	maxPlaceholder = 64  // UTF-16 code units
)

// Button is a button under a message. It has exactly one of Data, URL and CopyText.
type Button struct {
	Text     string    `json:"text"`
	Data     string    `json:"callback_data,omitempty"`
	URL      string    `json:"url,omitempty"`
	CopyText *CopyText `json:"copy_text,omitempty"`
	Style    string    `json:"style,omitempty"` // primary, success, danger, or empty
}

// CopyText is what a button puts on the clipboard.
type CopyText struct {
	Text string `json:"text"`
}

// ForceReply makes the person's client open a reply to the message.
type ForceReply struct {
	Placeholder string
	Selective   bool
}

// markup is what a message brings along for answering it.
type markup struct {
	keyboard [][]Button // under the message
	force    *ForceReply
	other    bool // a keyboard in the place of the phone's own, or its end
	json     any
}

// inline reports whether a message with this markup can be edited.
func (m *markup) inline() bool { return m == nil || m.force == nil && !m.other }

// same reports whether two keyboards are the same.
func (m *markup) same(other *markup) bool {
	return string(m.text()) == string(other.text())
}

func (m *markup) text() []byte {
	if m == nil || len(m.keyboard) == 0 {
		return nil
	}
	text, _ := json.Marshal(m.json)
	return text
}

// markup reads reply_markup; nil where there is none.
func (q *query) markup() (*markup, *failure) {
	var fields map[string]json.RawMessage
	given, err := q.decode("reply_markup", &fields)
	switch {
	case err != nil && json.Valid([]byte(q.values["reply_markup"])):
		return nil, badRequest("object expected as reply markup")
	case err != nil:
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	case !given:
		return nil, nil
	}
	m := &markup{}
	if err := json.Unmarshal([]byte(q.values["reply_markup"]), &m.json); err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	switch {
	case fields["inline_keyboard"] != nil:
		var rows [][]map[string]json.RawMessage
		if json.Unmarshal(fields["inline_keyboard"], &rows) != nil ||
			json.Unmarshal(fields["inline_keyboard"], &m.keyboard) != nil {
			return nil, badRequest("can't parse inline keyboard: an Array of Array of Objects is expected")
		}
		refused := checkButtons(slices.Concat(rows...), slices.Concat(m.keyboard...))
		m.keyboard = slices.DeleteFunc(m.keyboard, func(row []Button) bool { return len(row) == 0 })
		return m, refused
	case string(fields["force_reply"]) == "true":
		m.force = &ForceReply{Selective: string(fields["selective"]) == "true"}
		if text := fields["input_field_placeholder"]; text != nil {
			_ = json.Unmarshal(text, &m.force.Placeholder)
			if n := units(m.force.Placeholder); n == 0 || n > maxPlaceholder {
				return nil, badRequest("PLACEHOLDER_INVALID")
			}
		}
	default:
		m.other = true
	}
	return m, nil
}

// checkButtons refuses buttons that are none; fields are what each has.
func checkButtons(fields []map[string]json.RawMessage, buttons []Button) *failure {
	if len(buttons) > maxButtons {
		return badRequest("reply markup is too long")
	}
	for i, b := range buttons {
		kinds := 0
		for name := range fields[i] {
			if !slices.Contains([]string{"text", "style", "icon_custom_emoji_id"}, name) {
				kinds++
			}
		}
		_, data := fields[i]["callback_data"]
		switch {
		case strings.TrimSpace(b.Text) == "":
			return badRequest("BUTTON_TEXT_INVALID")
		case kinds == 0:
			return badRequest("can't parse inline keyboard button: text buttons are unallowed in the inline keyboard")
		case kinds > 1:
			return badRequest("can't parse inline keyboard button: exactly one optional field must be used")
		case data && (b.Data == "" || len(b.Data) > maxData):
			return badRequest("BUTTON_DATA_INVALID")
		case b.URL != "" && !strings.Contains(b.URL, "://"):
			return badRequest("BUTTON_URL_INVALID")
		case b.CopyText != nil && (b.CopyText.Text == "" || units(b.CopyText.Text) > maxCopy):
			return badRequest("BUTTON_COPY_TEXT_INVALID")
		case !slices.Contains([]string{"", "primary", "success", "danger"}, b.Style):
			return badRequest("can't parse inline keyboard button: invalid button style specified")
		}
	}
	return nil
}
