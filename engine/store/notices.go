package store

import (
	"context"

	"github.com/daycared/daycared/permissions"
)

const noticeColumns = `id, person, place, about, subject, caused_by, urgent, created_at`

func noticeFields(n *permissions.Notice) []any {
	return []any{&n.ID, &n.To, &n.Place, &n.About, &n.Subject, &n.By, &n.Urgent, instant{&n.CreatedAt}}
}

// A reminder that is still to be sent stands for those that come after it, and is urgent if one of them is.
const addNotice = `INSERT INTO notices (` + noticeColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ` +
	`ON CONFLICT (person, place) WHERE about = 'waiting' DO UPDATE SET urgent = notices.urgent OR excluded.urgent`

func insertNotice(ctx context.Context, t *tx, n permissions.Notice) error {
	n.ID = permissions.NewID(n.CreatedAt)
	_, err := t.ExecContext(ctx, addNotice, noticeFields(&n)...)
	return err
}

const readNotices = `SELECT ` + noticeColumns + ` FROM notices WHERE id > $1 ORDER BY id LIMIT 0 + $2`

// Notices lists at most limit notices that are still to be sent, after the one named, oldest first.
func (s *Store) Notices(
	ctx context.Context, after permissions.ID, limit int,
) (notices []permissions.Notice, err error) {
	err = s.read(ctx, func(from source) error {
		notices, err = collect(ctx, from, "a notice", noticeFields, readNotices, after, limit)
		return err
	})
	return notices, err
}

const deleteNotice = `DELETE FROM notices WHERE id = $1`

// Noted strikes out a notice: it was sent, or is nobody's to read any more.
func (s *Store) Noted(ctx context.Context, id permissions.ID) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.ExecContext(ctx, deleteNotice, id)
		return err
	})
}
