package permissions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strings"
)

// codeAlphabet has no characters that look alike (no 0 O 1 I L).
const codeAlphabet = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"

// CodeLength is the number of characters in a code.
const CodeLength = 5

// CodeCount is the number of different codes: 31⁵, so one is reused only after that many requests (more than ten a
// second for thirty days).
const CodeCount = 31 * 31 * 31 * 31 * 31

// Coder gives each request a code that people can type: five unambiguous characters that do not reveal the next one. A
// code is a keyed permutation of the request's number, so it needs no index of its own. The zero key is valid.
type Coder struct{ Key [32]byte }

// Encode returns the code of the n-th request.
func (c Coder) Encode(n int64) string {
	x := uint32((n%CodeCount + CodeCount) % CodeCount) // also for negative numbers, for which no cycle would end
	mac := hmac.New(sha256.New, c.Key[:])
	for ok := false; !ok; ok = x < CodeCount { // cycle walking: 2²⁶ down to 31⁵
		x = permute(mac, x, [4]byte{0, 1, 2, 3})
	}
	var code [CodeLength]byte
	for i := range code {
		code[CodeLength-1-i] = codeAlphabet[x%uint32(len(codeAlphabet))]
		x /= uint32(len(codeAlphabet))
	}
	return string(code[:])
}

// Decode returns the number, modulo [CodeCount], with this code; case does not matter. ok is false for malformed codes.
func (c Coder) Decode(code string) (n int64, ok bool) {
	if len(code) != CodeLength {
		return 0, false
	}
	var x uint32
	for i := range len(code) {
		ch := code[i]
		if 'a' <= ch && ch <= 'z' { // by hand: Unicode's upper case turns other characters into letters, as ſ into S
			ch -= 'a' - 'A'
		}
		digit := strings.IndexByte(codeAlphabet, ch)
		if digit < 0 {
			return 0, false
		}
		x = x*uint32(len(codeAlphabet)) + uint32(digit)
	}
	mac := hmac.New(sha256.New, c.Key[:])
	for !ok {
		x = swap(permute(mac, swap(x), [4]byte{3, 2, 1, 0}))
		ok = x < CodeCount
	}
	return int64(x), ok
}

const (
	halfBits = 13
	halfMask = 1<<halfBits - 1
)

// permute is a Feistel network of four rounds over 26 bits. With swapped halves and reversed rounds it is its own
// inverse.
func permute(mac hash.Hash, x uint32, rounds [4]byte) uint32 {
	left, right := x>>halfBits, x&halfMask
	for _, round := range rounds {
		mac.Reset()
		mac.Write(binary.BigEndian.AppendUint32([]byte{round}, right))
		left, right = right, left^(binary.BigEndian.Uint32(mac.Sum(nil))&halfMask)
	}
	return left<<halfBits | right
}

func swap(x uint32) uint32 { return x&halfMask<<halfBits | x>>halfBits }
