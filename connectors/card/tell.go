package card

import (
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Notice is what a notice says, in rows; none when there is nothing to say.
func Notice(n connectors.Notice, o Options) []string {
	switch n.About {
	case permissions.AboutWaiting:
		if len(n.Waiting) == 0 {
			return nil
		}
		return Reminder(n.Waiting, o)
	case permissions.AboutEnded:
		return Ended(n.Grant, o)
	case permissions.AboutRevoked:
		return Revoked(n.Grant, n.Ran, o)
	case permissions.AboutStopped:
		return []string{"⛔ Everything was stopped by " + person(n.By, o) + "; nothing is asked until resume."}
	case permissions.AboutStrangers:
		return Strangers(n.Strangers, o)
	}
	return nil
}
