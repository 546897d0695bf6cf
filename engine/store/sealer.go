package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"strings"
	"sync"

	"github.com/daycared/daycared/permissions"
)

// sealSize is the length of a seal in bytes.
const sealSize = 16

// sealVersion is the version of what seals cover; see the column seals of meta. 0 is before migration 19, and 1 does not cover which
// list a copy is on.
const sealVersion = 2

// sealer makes and checks seals, which are MACs, with one key.
type sealer struct {
	id   string // identifies the key without revealing it
	pool sync.Pool
}

func newSealer(key auditKey) *sealer {
	k := &sealer{pool: sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, key[:])} }}}
	k.id = hex.EncodeToString(k.seal("key")[:8])
	return k
}

// mac is a MAC in the making.
type mac struct {
	hash.Hash
	b, sum []byte
}

// end returns the seal of b.
func (m *mac) end() []byte {
	m.Reset()
	_, _ = m.Write(m.b) // never fails
	m.sum = m.Sum(m.sum[:0])
	return bytes.Clone(m.sum[:sealSize])
}

// seal is the MAC of a row's bound values. Type and length precede each value, so that no two rows have the same bytes.
func (k *sealer) seal(table string, values ...any) []byte {
	m := k.pool.Get().(*mac) //nolint:errcheck // New makes nothing else
	defer k.pool.Put(m)
	b := sealText(m.b[:0], table)
	for _, bound := range values {
		switch v := bound.(type) { // the usual ones, without reflection
		case string:
			b = sealText(b, v)
			continue
		case instant:
			b = sealInt(b, micros(*v.time))
			continue
		case driver.Valuer:
		default:
			switch v := reflect.Indirect(reflect.ValueOf(bound)); v.Kind() { //nolint:exhaustive // the others are rare
			case reflect.String:
				b = sealText(b, v.String())
				continue
			case reflect.Int, reflect.Int64:
				b = sealInt(b, v.Int())
				continue
			}
		}
		v, err := driver.DefaultParameterConverter.ConvertValue(bound)
		if err != nil {
			return nil // never holds
		}
		switch v := v.(type) {
		case int64:
			b = sealInt(b, v)
		case bool:
			b = append(b, 'f')
			if v {
				b[len(b)-1] = 't'
			}
		case string:
			b = sealText(b, v)
		case []byte:
			b = sealText(b, string(v))
		default:
			return nil
		}
	}
	m.b = b
	return m.end()
}

// entry seals an entry by its hash, which covers the entry and the hash of the one before.
func (k *sealer) entry(hash permissions.Digest) []byte {
	m := k.pool.Get().(*mac) //nolint:errcheck // New makes nothing else
	defer k.pool.Put(m)
	m.b = sealText(sealText(m.b[:0], "audit"), string(hash[:]))
	return m.end()
}

func sealInt(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(n))
}

func sealText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, 's'), uint64(len(text))), text...)
}

// isSealOf reports whether mac is the seal of a row.
func (k *sealer) isSealOf(mac []byte, table string, values ...any) bool {
	return len(mac) == sealSize && hmac.Equal(mac, k.seal(table, values...))
}

// auditKey makes the seals. It is in its own file and in no backup: who has only the store or a copy can forge none.
type auditKey [32]byte

// KeyName is the default name of the audit key's file in the store's folder.
const KeyName = "audit.key"

func readKey(path string) (*sealer, error) {
	raw, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit key %s: %w", path, permissions.Cause(err))
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(b) != len(auditKey{}) {
		return nil, fmt.Errorf("read the audit key %s: it does not hold %d hexadecimal digits", path, 2*len(auditKey{}))
	}
	return newSealer(auditKey(b)), nil
}

func makeKey(path string) (*sealer, error) {
	var key auditKey
	_, _ = rand.Read(key[:]) // never fails
	if err := WriteFile(path, []byte(hex.EncodeToString(key[:])+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit key %s: %w", path, permissions.Cause(err))
	}
	return newSealer(key), nil
}
