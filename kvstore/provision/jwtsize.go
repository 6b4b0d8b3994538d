package provision

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/nats-io/jwt/v2"
)

// ControlLine is the required max_control_line of nats-server for users with JWTs. A user sends its
// JWT in one line. The JWT of a node in 64 groups has about 45 KB.
const ControlLine = "64KB"

// LongJWT is the size in bytes above which a JWT may exceed the default max_control_line of 4 KB. The
// line also contains a signature and names.
const LongJWT = 3680

// Parts of a JWT with a constant length.
const (
	keyLength       = 56 // a public key
	idLength        = 52
	signatureLength = 64
	anyTime         = 1_800_000_000 // the time of issue
)

// JWTSize returns the size in bytes of the JWT of a user with this name and these permissions, signed
// by a signing key of the account.
func (p Permissions) JWTSize(name string) int {
	key := strings.Repeat("K", keyLength)
	claims := jwt.NewUserClaims(key)
	claims.UserPermissionLimits = p.Claims()
	claims.Name, claims.Issuer, claims.IssuerAccount = name, key, key
	claims.ID, claims.IssuedAt = strings.Repeat("I", idLength), anyTime
	claims.Type, claims.Version = jwt.UserClaim, 2

	return jsonSize(jwt.Header{Type: jwt.TokenTypeJwt, Algorithm: jwt.AlgorithmNkey}) + 1 + jsonSize(claims) + 1 + base64.RawURLEncoding.EncodedLen(signatureLength)
}

// jsonSize returns the length of a value as JSON in base64.
func jsonSize(v any) int {
	// These values always encode.
	text, _ := json.Marshal(v)

	return base64.RawURLEncoding.EncodedLen(len(text))
}
