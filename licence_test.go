package muster_test

import (
	"testing"

	"github.com/muster-hpc/muster"
)

func TestParseLicenceServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.LicenceServer{
		"licences.example.org:27000": {Host: "licences.example.org", Port: 27000},
		"LIC.:1055":                  {Host: "lic", Port: 1055},
	} {
		got, err := muster.ParseLicenceServer(text)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
		if again, err := muster.ParseLicenceServer(got.String()); err != nil || again != got {
			t.Errorf("%s is %+v again, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "lic", "27000@lic", "lic:", "lic:22", "lic:65536", "lic:x", "10.0.0.1:27000", "[::1]:27000", "localhost:27000", "a b:27000", "-a:27000", "a..b:27000", "1.2.3:27000", "*.example.org:27000"} {
		if got, err := muster.ParseLicenceServer(text); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

func FuzzParseLicenceServer(f *testing.F) {
	f.Add("licences.example.org:27000")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := muster.ParseLicenceServer(text)
		if err != nil {
			return
		}
		if again, err := muster.ParseLicenceServer(l.String()); err != nil || again != l {
			t.Errorf("%q is %+v, and then %+v, %v", text, l, again, err)
		}
	})
}
