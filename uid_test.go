package muster

import "testing"

func TestCheckUID(t *testing.T) {
	t.Parallel()
	for _, uid := range []int{1000, 20000, 61183, 65536, 200000, 1234601104, 1<<31 - 2} {
		if e := CheckUID(uid); e != nil {
			t.Errorf("%d: %v", uid, e)
		}
	}
	for _, uid := range []int{-1, 0, 999, 61184, 65519, 65520, 65533, 65534, 65535, 1<<31 - 1, 4294967295} {
		if e := CheckUID(uid); e == nil || e.Hint == "" {
			t.Errorf("%d is taken", uid)
		}
	}
}
