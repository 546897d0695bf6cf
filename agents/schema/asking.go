package schema

import (
	"errors"
	"time"

	"github.com/daycared/daycared/permissions"
)

// Asking is a tool with which agents ask people. Every server offers the same ones.
type Asking struct {
	Name, Title, Says string
	// Schema is its input schema, without some members.
	Schema func(without ...string) []byte
	// Question is the request of an input, complete except for who asks and from where. A permission's Agent is the agentId.
	Question func(input []byte, without ...string) (permissions.Request, error)
}

// The names of the tools.
const (
	RequestPermission = "request_permission"
	AskUser           = "ask_user"
	Pause             = "pause"
)

// AskingTools are all of them.
var AskingTools = []Asking{
	{
		RequestPermission, "Ask for permission",
		"Ask a person for permissions and wait for the answer. Use it before anything that reaches beyond your own folder: " +
			"the network, files elsewhere. Write includes read, and a folder all in it; ask for no more than you need. What is held " +
			`already is granted at once, without asking anybody. "Permission granted" means you may go on; "denied" is a person's ` +
			"answer and final, with their reason if they gave one; an error means that nobody said yes, so do not go on.",
		Of[permissionInput], questionOf[permissionInput](RequestPermission),
	},
	{
		AskUser, "Ask a person to choose",
		"Let a person choose between options, and wait. Use it when you cannot know what they want; put the safest option first: " +
			"it is taken when nobody answers in time, and the result says so. The result is the option, or the person's own words. " +
			"A choice is not a permission for anything: use request_permission for that.",
		Of[choiceInput], questionOf[choiceInput](AskUser),
	},
	{
		Pause, "Pause for a person",
		`Stop until a person has looked. Mode "continue" goes on by itself when nobody answers in time; mode "confirm" is a ` +
			`yes-or-no question that never answers itself. "Interrupted by the user" means: stop what you are doing.`,
		Of[pauseInput], questionOf[pauseInput](Pause),
	},
}

// questionOf reads a tool's questions. They are valid.
func questionOf[T interface {
	question() (permissions.Request, error)
}](
	tool string,
) func(input []byte, without ...string) (permissions.Request, error) {
	return func(input []byte, without ...string) (q permissions.Request, err error) {
		in, err := Decode[T](tool, input, without...)
		if err == nil {
			q, err = in.question()
		}
		if err == nil {
			err = q.Validate()
		}
		return q, err
	}
}

// extra are the members that every question may have, besides its deadline.
type extra struct {
	Details string `json:"details" size:"..1048576" unit:"bytes" say:"all that the person should see besides, as a diff, whole; at most 1 MiB"`
	Key     string `json:"key" size:"1..200" say:"your own name for this very question: asking again with it finds the same answer"`
}

// add adds them to a question, and the minutes until its deadline; nil: the default.
func (e extra) add(q permissions.Request, minutes *float64) permissions.Request {
	q.Details, q.Key = e.Details, e.Key
	if minutes != nil {
		q.WantedTimeout = time.Duration(*minutes * float64(time.Minute)).Truncate(time.Second)
	}
	return q
}

type permissionInput struct {
	Permission string   `json:"permission" size:"1.." say:"one of @network, @workspace, @events, @read:/absolute/path, @write:/absolute/path"`
	Several    []string `json:"permissions" size:"1..50" each:"1.." say:"several permissions, asked as one question, instead of permission"`
	Reason     string   `json:"reason" need:"yes" size:"1..2000" say:"why, and what you will do with it; the person reads exactly this"`
	Agent      string   `json:"agentId" size:"1..200" say:"the name of the agent that needs it, if that is one you started and not you"`
	Minutes    *float64 `json:"timeout_minutes" size:"1..60" default:"15" say:"how long people have; leave it out unless it is urgent"`
	extra
}

func (in permissionInput) question() (q permissions.Request, err error) {
	if (in.Permission == "") == (in.Several == nil) {
		return q, errors.New("give either permission or permissions")
	}
	if in.Several == nil {
		in.Several = []string{in.Permission}
	}
	q = in.add(permissions.Request{Kind: permissions.KindPermission, Reason: in.Reason, Agent: in.Agent}, in.Minutes)
	q.Tags, err = permissions.ParseTags(in.Several)
	return q, err
}

type choiceInput struct {
	Question string   `json:"question" need:"yes" size:"1..4000" say:"the question, in full: the person does not see your conversation"`
	Options  []string `json:"options" need:"yes" size:"2..20" each:"1..200" say:"what to choose between, all different, the safest first"`
	Minutes  *float64 `json:"timeout_minutes" size:"1..60" default:"5" say:"how long people have; leave it out unless it is urgent"`
	extra
}

func (in choiceInput) question() (permissions.Request, error) {
	return in.add(permissions.Request{Kind: permissions.KindClarification, Message: in.Question, Choices: in.Options}, in.Minutes), nil
}

type pauseInput struct {
	Message string           `json:"message" need:"yes" size:"1..4000" say:"what to look at, and what comes next"`
	Mode    permissions.Mode `json:"mode" one:"continue,confirm" default:"continue" say:"confirm: a yes or no, which silence never is"`
	Minutes *float64         `json:"timeout_minutes" size:"1..60" default:"15" say:"how long people have; leave it out unless it is urgent"`
	extra
}

func (in pauseInput) question() (permissions.Request, error) {
	return in.add(permissions.Request{Kind: permissions.KindPause, Mode: in.Mode, Message: in.Message}, in.Minutes), nil
}
