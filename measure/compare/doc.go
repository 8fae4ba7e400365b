// Package compare puts certificates side by side: how figures went over time, how two
// clusters or machines compare, and what machines of a class show. Only like is
// compared with like.
//
// It is pure: which certificates there are, and who may see them, is asked elsewhere.
package compare
