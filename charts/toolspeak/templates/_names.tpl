{{- define "toolspeak.name" -}}
{{- if contains "toolspeak" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-toolspeak" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "toolspeak.selector" -}}
app.kubernetes.io/name: toolspeak
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolspeak.labels" -}}
{{ include "toolspeak.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "toolspeak.secret" -}}
{{- .Values.secret.existing | default (include "toolspeak.name" .) -}}
{{- end -}}
