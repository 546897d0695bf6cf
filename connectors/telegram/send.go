package telegram

// noPreview keeps Telegram from fetching what an agent's words link to.
var noPreview = map[string]any{"is_disabled": true}

// replyTo has a message stand under another, or alone when that is gone.
func replyTo(message int64) map[string]any {
	return map[string]any{"message_id": message, "allow_sending_without_reply": true}
}

// params are what sends a message or puts it in place of another; without a keyboard the buttons of the other go.
func (o outgoing) params() map[string]any {
	params := map[string]any{"text": o.Text, "link_preview_options": noPreview}
	if len(o.Entities) > 0 {
		params["entities"] = o.Entities
	}
	if len(o.Keyboard.Rows) > 0 {
		params["reply_markup"] = o.Keyboard
	}
	return params
}

// inPlace are what puts something in place of a message.
func inPlace(at ref, o outgoing) map[string]any {
	params := o.params()
	params["chat_id"], params["message_id"] = at.chat, at.message
	return params
}
