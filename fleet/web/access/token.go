package access

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
)

const (
	// tokenPrefix starts all tokens, so that secret scanners find them.
	tokenPrefix = "muster_"
	tokenBytes  = 32
	maxTokens   = 1000
	maxFile     = 256 << 10
	maxUser     = 64
)

type token struct {
	User
	digest [sha256.Size]byte
}

// NewToken returns a new token, and its line for the file of tokens, which does not reveal it. It returns an error for
// an invalid name.
func NewToken(role Role, name string) (secret, line string, err error) {
	if err := checkUser(name); err != nil {
		return "", "", err
	}
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)

	return secret, fmt.Sprintf("%s %s %x\n", role, name, sha256.Sum256([]byte(secret))), nil
}

func checkUser(name string) error {
	if !model.IsToken(name) || len(name) > maxUser {
		return fmt.Errorf("invalid name %q: write letters, digits, - and _, at most %d", name, maxUser)
	}

	return nil
}

// readTokens reads a file of tokens. It returns an error if other users can read or change the file.
func readTokens(path string) ([]token, error) {
	text, err := files.ReadSecret(path, maxFile)
	if err != nil {
		return nil, err
	}
	all, err := parseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}

	return all, nil
}

// parseTokens reads lines of a role, a name and a digest. It skips empty lines and comments (#). Errors start with the
// line number.
func parseTokens(text []byte) ([]token, error) {
	var out []token
	seen := map[[sha256.Size]byte]bool{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t, err := parseToken(fields)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%d: %w", number, err)
		case seen[t.digest]:
			return nil, fmt.Errorf("%d: the token of %s is there twice", number, t.Name)
		case len(out) == maxTokens:
			return nil, fmt.Errorf("%d: at most %d tokens are allowed", number, maxTokens)
		}
		seen[t.digest] = true
		out = append(out, t)
	}

	return out, nil
}

func parseToken(fields []string) (token, error) {
	if len(fields) != 3 {
		return token{}, fmt.Errorf("%d words: write a role, a name and the SHA-256 of the token, as muster fleet token prints it", len(fields))
	}
	role, err := ParseRole(fields[0])
	if err != nil {
		return token{}, err
	}
	if err := checkUser(fields[1]); err != nil {
		return token{}, err
	}
	t := token{User: User{Name: fields[1], Role: role}}
	digest, err := hex.DecodeString(fields[2])
	if err != nil || copy(t.digest[:], digest) != len(t.digest) || len(digest) != len(t.digest) {
		return token{}, fmt.Errorf("the last word must be the SHA-256 of the token, %d hexadecimal digits", hex.EncodedLen(sha256.Size))
	}

	return t, nil
}

// userOf returns the user of a token. It takes the same time for every well-formed token, and rejects other texts.
func userOf(all []token, text string) (User, bool) {
	if !strings.HasPrefix(text, tokenPrefix) || len(text) != len(tokenPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return User{}, false
	}

	return userOfDigest(all, sha256.Sum256([]byte(text)))
}

func userOfDigest(all []token, digest [sha256.Size]byte) (User, bool) {
	found := User{}
	for _, t := range all {
		if subtle.ConstantTimeCompare(digest[:], t.digest[:]) == 1 {
			found = t.User
		}
	}

	return found, found.Role != None
}

// Role is a permission. Each role includes the roles before it.
type Role int

// The roles.
const (
	// None permits nothing.
	None Role = iota
	// Read permits to see the fleet.
	Read
	// Operate permits to change it.
	Operate
)

// String returns the word for the role, as in files and flags.
func (r Role) String() string {
	switch r {
	case Read:
		return "read"
	case Operate:
		return "operate"
	default:
		return "none"
	}
}

// ParseRole reads the word for a role, read or operate.
func ParseRole(text string) (Role, error) {
	for _, r := range []Role{Read, Operate} {
		if r.String() == text {
			return r, nil
		}
	}

	return None, fmt.Errorf("unknown role %q: write read or operate", text)
}

// User is the author of a request.
type User struct {
	// Name is the name of the token, or the display name and subject at the provider. It is unique. It is empty without
	// sign-in.
	Name string
	Role Role
	// Subject is the unique id at the provider, empty for tokens.
	Subject string
}

// Share returns a key for limits per user. It does not change with the display name, and is empty without sign-in.
func (u User) Share() string {
	if u.Subject != "" {
		return "oidc " + u.Subject // token names have no spaces
	}

	return u.Name
}

type userKey struct{}

// ForAll returns a context without a user, for a read that many users share. It does not count against the limit of one
// user.
func ForAll(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, User{})
}

// UserOf returns the user of a context, or a user without a name and role if no Guard passed the request.
func UserOf(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)

	return u
}

// RolesOf returns the roles of a name's tokens in a file of tokens.
func RolesOf(file, name string) []string {
	var out []string
	for line := range strings.Lines(file) {
		if words := strings.Fields(line); len(words) == 3 && words[1] == name {
			out = append(out, words[0])
		}
	}

	return out
}

// maxAppended is the maximum number of bytes to read from a file of tokens.
const maxAppended = 1 << 20

// AppendLine appends a line to a file that only its owner may read. It creates a missing file. It returns the
// previous content.
func AppendLine(path, line string) (before string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s has mode %04o, so others may read it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAppended))
	if err != nil {
		return "", err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	_, err = f.WriteString(line)

	return string(text), errors.Join(err, f.Sync())
}
