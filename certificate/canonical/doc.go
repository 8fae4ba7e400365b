// Package canonical writes JSON in the one form of RFC 8785: members sorted by
// the UTF-16 code units of their names, numbers as ECMAScript prints them,
// strings with no escape that is not needed, no space between. Two texts with
// the same values have the same canonical bytes, so a digest or a signature of
// those is one of the values.
//
// It reads I-JSON (RFC 7493) and nothing else: a name that stands twice in one
// object, half a surrogate pair, a noncharacter or a number beyond the doubles
// is refused, because readers disagree about what such a text says. The form is
// that of jsontext, which refuses most of these itself; the rest is refused before.
package canonical
