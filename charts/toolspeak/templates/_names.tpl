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

{{- /* Workers of runs have a name of their own: the gateway's Service and budget must not select them. */ -}}
{{- define "toolspeak.workerSelector" -}}
app.kubernetes.io/name: toolspeak-worker
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "toolspeak.workerLabels" -}}
{{ include "toolspeak.workerSelector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{- end -}}

{{- define "toolspeak.egress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- if .Values.networkPolicy.egress }}
{{ toYaml .Values.networkPolicy.egress }}
{{- else }}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except: ["169.254.0.0/16"]
    - ipBlock:
        cidr: ::/0
        except: ["fe80::/10"]
{{- end }}
{{- end -}}
