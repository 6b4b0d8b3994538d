package model

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// DigestPrefix begins every digest of bytes: sha256-<hex>.
const DigestPrefix = "sha256-"

// DigestOf names bytes by their SHA-256.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)

	return DigestPrefix + hex.EncodeToString(sum[:])
}

// DigestFrom returns the digest of what was written to h, which is a SHA-256.
func DigestFrom(h hash.Hash) string { return DigestPrefix + hex.EncodeToString(h.Sum(nil)) }
