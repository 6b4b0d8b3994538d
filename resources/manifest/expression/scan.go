package expression

import "strings"

// Part is a part of a text: a literal, or an expression with the offset of its `${` or `{{`.
type Part struct {
	Literal string
	Expr    string
	At      int
	IsExpr  bool
}

const (
	dollarHint = "write `$${` for a literal `${`"
	braceHint  = "write `{{ '{{' }}` for a literal `{{`"
)

// MayHoldExpression is a cheap check that avoids the scan for most texts.
func MayHoldExpression(s string) bool {
	for i := strings.IndexByte(s, '{'); i >= 0 && i < len(s); {
		if i > 0 && s[i-1] == '$' || i+1 < len(s) && s[i+1] == '{' {
			return true
		}
		next := strings.IndexByte(s[i+1:], '{')
		if next < 0 {
			return false
		}
		i += 1 + next
	}

	return false
}

// Scan splits a text into its parts. If an expression does not end, at is its offset and ok is
// false.
func Scan(s string) (parts []Part, at int, ok bool) {
	var literal strings.Builder
	for i := 0; i < len(s); {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(rest, "${"), strings.HasPrefix(rest, "{{"):
			length, closed := expressionLength(rest[2:], Closing(rest))
			if !closed {
				return nil, i, false
			}
			if literal.Len() > 0 {
				parts = append(parts, Part{Literal: literal.String()})
				literal.Reset()
			}
			parts = append(parts, Part{IsExpr: true, Expr: strings.TrimSpace(rest[2 : 2+length]), At: i})
			i += 2 + length + len(Closing(rest))
		default:
			next := strings.IndexAny(rest[1:], "${") + 1
			if next == 0 {
				next = len(rest)
			}
			literal.WriteString(rest[:next])
			i += next
		}
	}
	if literal.Len() > 0 {
		parts = append(parts, Part{Literal: literal.String()})
	}

	return parts, 0, true
}

// Closing returns the closing braces for an expression that begins with opened.
func Closing(opened string) string {
	if opened[0] == '$' {
		return "}"
	}

	return "}}"
}

// expressionLength returns the length of an expression up to its closing braces. It ignores braces
// in nested braces, strings and comments.
func expressionLength(s, closing string) (int, bool) {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case depth == 0 && strings.HasPrefix(s[i:], closing):
			return i, true
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '"' || c == '\'' || c == '`':
			i += stringLength(s[i:])
			continue
		case strings.HasPrefix(s[i:], "/*"):
			i += lengthTo(s[i:], "*/")
			continue
		case strings.HasPrefix(s[i:], "//"):
			i += lengthTo(s[i:], "\n")
			continue
		}
		i++
	}

	return 0, false
}

// stringLength returns the length of a string with its quotes. An unclosed string extends to the
// end.
func stringLength(s string) int {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote != '`':
			i++
		case s[i] == quote:
			return i + 1
		}
	}

	return len(s)
}

func lengthTo(s, end string) int {
	i := strings.Index(s[2:], end)
	if i < 0 {
		return len(s)
	}

	return 2 + i + len(end)
}

// LiteralText escapes a text that looks like an expression.
func LiteralText(s string) string {
	if !MayHoldExpression(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case i+1 < len(s) && s[i] == '$' && s[i+1] == '{':
			b.WriteString("$${")
			i++
		case i+1 < len(s) && s[i] == '{' && s[i+1] == '{':
			b.WriteString("{{ '{{' }}")
			i++
		default:
			b.WriteByte(s[i])
		}
	}

	return b.String()
}

// LiteralHint explains how to write an opening brace as text.
func LiteralHint(opened string) string {
	if opened[0] == '$' {
		return dollarHint
	}

	return braceHint
}

// Bare removes the optional braces of a condition.
func Bare(text string) string {
	text = strings.TrimSpace(text)
	if parts, _, ok := Scan(text); ok && len(parts) == 1 && parts[0].IsExpr {
		return parts[0].Expr
	}

	return text
}
