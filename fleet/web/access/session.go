package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// errSeal is a text that another server sealed, or that was sealed for another purpose.
var errSeal = errors.New("not sealed by this server")

// sealer encrypts and signs values.
type sealer struct{ aead cipher.AEAD }

// newSealer returns a sealer for a secret and a sign-in configuration. Servers with the same secret and
// configuration can open each other's texts, also after a restart.
func newSealer(secret []byte, configuration string) (sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "muster fleet serve: sessions "+configuration, 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)

	return sealer{aead}, err
}

// seal encodes a value for a purpose.
func (s sealer) seal(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)

	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(purpose))), err
}

// open decodes a text that seal made for the same purpose, or returns errSeal.
func (s sealer) open(purpose, text string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, []byte(purpose))
	if err != nil {
		return errSeal
	}

	return json.Unmarshal(plain, v)
}

// random returns an unguessable text.
func random() string { return rand.Text() }
