{{- define "querent.name" -}}
{{ printf "%s-querent" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "querent.labels" -}}
app.kubernetes.io/name: querent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "querent.selector" -}}
app.kubernetes.io/name: querent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "querent.clusterSecret" -}}
{{ .Values.cluster.secret | default (printf "%s-cluster" (include "querent.name" .)) }}
{{- end }}

{{/* What coordinators and workers both need. */}}
{{- define "querent.clusterEnv" -}}
- name: QUERENT_CLUSTER_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "querent.clusterSecret" . }}
      key: key
- name: QUERENT_DATA_PATH
  value: {{ required "several servers read the files of tables: dataPath has to be a URL" .Values.dataPath | quote }}
{{- if .Values.tls.secret }}
- name: QUERENT_CLUSTER_CA
  value: /tls/ca.crt
- name: QUERENT_CLUSTER_CLIENT_CERTIFICATE
  value: /tls/tls.crt
- name: QUERENT_CLUSTER_CLIENT_KEY
  value: /tls/tls.key
{{- end }}
{{- end }}

{{- define "querent.extraEnv" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "querent.storeEnv" -}}
{{- if .Values.storeSecret }}
envFrom:
  - secretRef:
      name: {{ .Values.storeSecret }}
{{- end }}
{{- end }}
