{{- define "flagsvc.name" -}}
{{- $name := ternary .Release.Name (printf "%s-flagsvc" .Release.Name) (contains "flagsvc" .Release.Name) -}}
{{- $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- define "flagsvc.chartLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: flagsvc
{{- end -}}

{{/* The labels that select the pods of a component. `name` is `proxy` or `server` in all that follows. */}}
{{- define "flagsvc.selector" -}}
app.kubernetes.io/name: flagsvc
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* The metadata of a component's object; `suffix` is added to its name. */}}
{{- define "flagsvc.metadata" -}}
metadata:
  name: {{ include "flagsvc.name" .root }}-{{ .name }}{{ .suffix }}
  labels:
    {{- include "flagsvc.selector" . | nindent 4 }}
    {{- include "flagsvc.chartLabels" .root | nindent 4 }}
    {{- with .labels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "flagsvc.port" -}}
{{ ternary 3000 4242 (eq . "proxy") }}
{{- end -}}

{{- define "flagsvc.secretName" -}}
{{- if .part.secret.name }}{{ .part.secret.name }}{{ else if .part.secret.create }}{{ include "flagsvc.name" .root }}-{{ .name }}{{ end -}}
{{- end -}}

{{- define "flagsvc.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else }}{{ ternary (include "flagsvc.name" .) "default" .Values.serviceAccount.create }}{{ end -}}
{{- end -}}

{{/* Variable → value: the chart's own, and over these the options. */}}
{{- define "flagsvc.variables" -}}
{{- $own := dict -}}
{{- if eq .name "proxy" -}}
{{- $own = dict "PORT" "3000" "FLAGSVC_ADMIN_ADDRESS" ":9090" -}}
{{- if .root.Values.server.enabled -}}
{{- $_ := set $own "FLAGSVC_URL" (printf "http://%s-server:4242/api" (include "flagsvc.name" .root)) -}}
{{- end -}}
{{- else -}}
{{- $own = dict "FLAGSVC_SERVER_PORT" "4242" "FLAGSVC_SERVER_ADMIN_ADDRESS" ":9090" -}}
{{- if not (hasKey .part.secret.variables "FLAGSVC_DATABASE_URL") -}}
{{- $_ := set $own "FLAGSVC_DATABASE_URL" "/state/flags.db" -}}
{{- end -}}
{{- end -}}
{{- range $variable, $key := .part.secret.variables -}}
{{- $_ := set $own (printf "%s_FILE" $variable) (printf "/run/secrets/flagsvc/%s" $key) -}}
{{- end -}}
{{- merge (dict) .part.options $own | toYaml -}}
{{- end -}}

{{/* Fails where the values of a component do not go together. */}}
{{- define "flagsvc.check" -}}
{{- if and .part.secret.variables (not (include "flagsvc.secretName" .)) -}}
{{- fail (printf "%s.secret: give the name of a Secret with the keys %s, or `create` for one that the chart makes" .name (values .part.secret.variables | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if and .part.secret.name .part.secret.create -}}
{{- fail (printf "%s.secret: give either `name` or `create`" .name) -}}
{{- end -}}
{{- range $key := values .part.secret.variables -}}
{{- if and $.part.secret.create (not (hasKey $.part.secret.create $key)) -}}
{{- fail (printf "%s.secret.create has no key `%s`, which `variables` names" $.name $key) -}}
{{- end -}}
{{- end -}}
{{- if and .part.persistence.enabled (or .part.autoscaling.enabled (gt (int .part.replicas) 1)) -}}
{{- fail (printf "%s.persistence is for one replica: set %s.replicas to 1, and no autoscaling" .name .name) -}}
{{- end -}}
{{- if and (eq .name "server") (not .part.persistence.enabled) (not (hasKey .part.secret.variables "FLAGSVC_DATABASE_URL")) -}}
{{- fail "server: it needs a database: persistence.enabled for an SQLite file, or FLAGSVC_DATABASE_URL in secret.variables" -}}
{{- end -}}
{{- end -}}
