package provision

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/nats-io/jwt/v2"
)

// ControlLine is what max_control_line of nats-server must be for users by JWT: a user sends its
// JWT in one line. That of a node in 64 groups has some 45 KB.
const ControlLine = "64KB"

// LongJWT is the size in bytes above which a JWT may be too long for the default of
// max_control_line, which is 4 KB: the line also has a signature, and names.
const LongJWT = 3680

// The parts of a JWT whose length is always the same.
const (
	keyLength       = 56 // of a public key
	idLength        = 52
	signatureLength = 64
	anyTime         = 1_800_000_000 // of the issue
)

// JWTSize returns how many bytes the JWT of a user with these permissions has, which has that
// name and is signed by a signing key of the account.
func (p Permissions) JWTSize(name string) int {
	key := strings.Repeat("K", keyLength)
	claims := jwt.NewUserClaims(key)
	claims.UserPermissionLimits = p.Claims()
	claims.Name, claims.Issuer, claims.IssuerAccount = name, key, key
	claims.ID, claims.IssuedAt = strings.Repeat("I", idLength), anyTime
	claims.Type, claims.Version = jwt.UserClaim, 2

	return jsonSize(jwt.Header{Type: jwt.TokenTypeJwt, Algorithm: jwt.AlgorithmNkey}) + 1 + jsonSize(claims) + 1 + base64.RawURLEncoding.EncodedLen(signatureLength)
}

// jsonSize returns the length of JSON in base64.
func jsonSize(v any) int {
	// What a JWT has is always JSON.
	text, _ := json.Marshal(v)

	return base64.RawURLEncoding.EncodedLen(len(text))
}
