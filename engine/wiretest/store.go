package wiretest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/daycared/daycared/engine/store"
)

// OpenStore is [store.Open] that begins with a copy of an empty store if there is none at the path. Making one takes five times as
// long as opening the copy. Every such store of a process has the same name and the same keys. With DAYCARED_TEST_STORE=postgres in the
// environment, the store is in a database of PostgreSQL instead, which belongs to the path while its folder exists.
func OpenStore(ctx context.Context, o store.Options) (*store.Store, error) {
	if os.Getenv("DAYCARED_TEST_STORE") == "postgres" && o.Server == "" {
		var err error
		if o.Server, err = databases.of(o.Path); err != nil {
			return nil, err
		}
		return store.Open(ctx, o)
	}
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		files, err := emptyStore()
		for name, content := range files {
			at := filepath.Join(filepath.Dir(o.Path), strings.Replace(name, emptyName, strings.TrimSuffix(filepath.Base(o.Path), ".db"), 1))
			err = errors.Join(err, os.WriteFile(at, content, 0o600))
		}
		if err != nil {
			return nil, err
		}
	}
	return store.Open(ctx, o)
}

const emptyName = "empty" // and .db, .mark

// emptyStore is the content of the files of an empty store, by their names.
var emptyStore = sync.OnceValues(func() (map[string][]byte, error) {
	folder, err := os.MkdirTemp("", "daycared-empty-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	s, err := store.Open(context.Background(), store.Options{
		Path: filepath.Join(folder, emptyName+".db"), Log: Quiet,
		Now: func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) },
	})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	files := map[string][]byte{}
	for _, e := range entries {
		content, failed := os.ReadFile(filepath.Join(folder, e.Name()))
		err = errors.Join(err, failed)
		files[e.Name()] = content
	}
	return files, err
})
