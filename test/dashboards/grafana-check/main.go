// Reads dashboard files against the schema that Grafana publishes as Go types, and prints what does not fit: fields that
// the schema does not know, and values of another type.
//
// A required field that is missing is no finding: what the schema requires, Grafana fills in (a table's
// custom.inspect), and of the links of fields it requires what only links of dashboards have. What dashboards must have
// is the linter's.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Of grafana-foundation-sdk, as go.mod has it.
const version = "0.0.22"

const (
	missing  = "required field is missing from input"
	noSchema = "the type '%s' has no schema for it"
)

type fields = map[string]json.RawMessage

type panel struct {
	Type        string          `json:"type"`
	Options     fields          `json:"options"`
	FieldConfig json.RawMessage `json:"fieldConfig"`
	Panels      []panel         `json:"panels"`
}

type fieldConfig struct {
	Defaults struct {
		Custom fields `json:"custom"`
	} `json:"defaults"`
	Overrides []struct {
		Properties []struct {
			Id    string          `json:"id"`
			Value json.RawMessage `json:"value"`
		} `json:"properties"`
	} `json:"overrides"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("grafana-check version", version)
		return
	}
	plugins.RegisterDefaultPlugins()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: grafana-check dashboard.json...")
		os.Exit(2)
	}
	exitCode := 0
	for _, file := range os.Args[1:] {
		for _, finding := range check(file) {
			fmt.Printf("%s: %s\n", file, finding)
			exitCode = 1
		}
	}
	os.Exit(exitCode)
}

func check(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return []string{err.Error()}
	}
	var read dashboard.Dashboard
	findings := list("", read.UnmarshalJSONStrict(text))
	findings = append(findings, list("", read.Validate())...)
	var raw struct {
		Panels []panel `json:"panels"`
	}
	// Where this is none, the strict reader has said so.
	if json.Unmarshal(text, &raw) == nil {
		findings = append(findings, checkPanels("", raw.Panels)...)
	}
	// The strict reader goes through unknown fields in no order.
	sort.Strings(findings)
	return findings
}

// What the strict reader of a dashboard lets through: options of a type of panels that it has no schema for, and
// fieldConfig but for its defaults.custom.
func checkPanels(path string, panels []panel) (findings []string) {
	for i, each := range panels {
		place := fmt.Sprintf("%spanels[%d]", path, i)
		findings = append(findings, checkPanels(place+".", each.Panels)...)
		schema, _ := cog.ConfigForPanelcfgVariant(each.Type)
		if len(each.Options) > 0 && schema.StrictOptionsUnmarshaler == nil {
			findings = append(findings, fmt.Sprintf("%s.options: "+noSchema, place, each.Type))
		}
		if each.FieldConfig != nil {
			place += ".fieldConfig"
			findings = append(findings, checkFields(place, each, schema.StrictFieldConfigUnmarshaler)...)
		}
	}
	return findings
}

func checkFields(place string, of panel, readCustom func([]byte) (any, error)) []string {
	var strict dashboard.FieldConfigSource
	findings := list(place, strict.UnmarshalJSONStrict(of.FieldConfig))
	var raw fieldConfig
	if json.Unmarshal(of.FieldConfig, &raw) != nil {
		return findings
	}
	if readCustom == nil {
		readCustom = func([]byte) (any, error) { return nil, fmt.Errorf(noSchema, of.Type) }
		if len(raw.Defaults.Custom) > 0 {
			findings = append(findings, fmt.Sprintf("%s.defaults.custom: "+noSchema, place, of.Type))
		}
	}
	for i, override := range raw.Overrides {
		for k, property := range override.Properties {
			place := fmt.Sprintf("%s.overrides[%d].properties[%d]", place, i, k)
			findings = append(findings, list(place, checkProperty(property.Id, property.Value, readCustom))...)
		}
	}
	return findings
}

// A property of an override is one field of what the panel has as its defaults.
func checkProperty(id string, value json.RawMessage, readCustom func([]byte) (any, error)) error {
	name, isCustom := strings.CutPrefix(id, "custom.")
	text, err := json.Marshal(fields{name: value})
	if err != nil {
		return err
	}
	if isCustom {
		_, err = readCustom(text)
		return err
	}
	var field dashboard.FieldConfig
	return field.UnmarshalJSONStrict(text)
}

func list(place string, err error) (findings []string) {
	if err == nil {
		return nil
	}
	var several cog.BuildErrors
	if !errors.As(err, &several) {
		several = cog.MakeBuildErrors("", err)
	}
	for _, one := range several {
		if one.Message == missing {
			continue
		}
		path := strings.Trim(place+"."+one.Path, ".")
		findings = append(findings, strings.TrimPrefix(path+": "+one.Message, ": "))
	}
	return findings
}
