// Made by scripts/typescript_client.mjs of Querent 0.1.0.

/** What the server said no with. `code` is stable. */
export class QuerentError extends Error {
  constructor(status, code, message, hint = null) {
    super(message);
    this.name = "QuerentError";
    this.status = status;
    this.code = code;
    this.hint = hint;
  }

  static read(text, status, code) {
    let error = text;
    try {
      const body = JSON.parse(text);
      error = body.error ?? body.detail ?? text;
    } catch {
      // No JSON: the text is the message.
    }
    const message = typeof error === "string" ? error : (error.message ?? text);
    return new QuerentError(status, code ?? error.code ?? `http_${status}`, message || `HTTP ${status}`, error.hint ?? null);
  }
}

export class QuerentClient {
  #url;
  #token;
  #fetch;

  constructor(url, { token, fetch = globalThis.fetch } = {}) {
    this.#url = String(url).replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = fetch;
  }

  get(input = {}, options = {}) {
    return this.#json("/", "GET", false, [], [], input, options);
  }

  getWellKnownAgentCardJson(input = {}, options = {}) {
    return this.#json("/.well-known/agent-card.json", "GET", false, [], [], input, options);
  }

  getWellKnownAgentJson(input = {}, options = {}) {
    return this.#json("/.well-known/agent.json", "GET", false, [], [], input, options);
  }

  postA2a(input = {}, options = {}) {
    return this.#response("/a2a", "POST", true, [], ["A2A-Version","Idempotency-Key"], input, options);
  }

  postAgUi(input = {}, options = {}) {
    return this.#events("/ag-ui", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  getAgentengineApiAttachmentContent(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/AttachmentContent", "GET", false, ["FileUri"], [], input, options);
  }

  postAgentengineApiCancelRun(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/CancelRun", "POST", true, [], [], input, options);
  }

  postAgentengineApiCreateSession(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/CreateSession", "POST", true, [], [], input, options);
  }

  postAgentengineApiDeleteResponseFeedback(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/DeleteResponseFeedback", "POST", true, [], [], input, options);
  }

  postAgentengineApiDeleteSession(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/DeleteSession", "POST", true, [], [], input, options);
  }

  postAgentengineApiGetAgentUiBootstrap(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/GetAgentUiBootstrap", "POST", true, [], [], input, options);
  }

  postAgentengineApiGetResponseFeedback(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/GetResponseFeedback", "POST", true, [], [], input, options);
  }

  postAgentengineApiGetSession(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/GetSession", "POST", true, [], [], input, options);
  }

  postAgentengineApiListAgentModels(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/ListAgentModels", "POST", true, [], [], input, options);
  }

  postAgentengineApiListSessionEvents(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/ListSessionEvents", "POST", true, [], [], input, options);
  }

  postAgentengineApiListSessionMessages(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/ListSessionMessages", "POST", true, [], [], input, options);
  }

  postAgentengineApiListSessions(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/ListSessions", "POST", true, [], [], input, options);
  }

  postAgentengineApiRunAgent(input = {}, options = {}) {
    return this.#response("/agentengine/api/v1/RunAgent", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  getAgentengineApiSubscribeRunEvents(input = {}, options = {}) {
    return this.#events("/agentengine/api/v1/SubscribeRunEvents", "GET", false, ["SessionId","InvocationId","AfterSeqId","AgentId","UserId"], [], input, options);
  }

  postAgentengineApiUploadFile(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/UploadFile", "POST", true, [], [], input, options);
  }

  postAgentengineApiUpsertResponseFeedback(input = {}, options = {}) {
    return this.#json("/agentengine/api/v1/UpsertResponseFeedback", "POST", true, [], [], input, options);
  }

  postApiChat(input = {}, options = {}) {
    return this.#response("/api/chat", "POST", true, [], ["Last-Event-ID","Idempotency-Key"], input, options);
  }

  postApiChecksExecute(input = {}, options = {}) {
    return this.#response("/api/checks/execute", "POST", true, [], [], input, options);
  }

  getApiInfo(input = {}, options = {}) {
    return this.#json("/api/info", "GET", false, ["detail"], [], input, options);
  }

  getApiModel(input = {}, options = {}) {
    return this.#json("/api/model", "GET", false, [], [], input, options);
  }

  postApiOauthCallback(input = {}, options = {}) {
    return this.#response("/api/oauth/callback", "POST", true, [], [], input, options);
  }

  postApiEmbedGenerateSession(input = {}, options = {}) {
    return this.#json("/api/v1/embed/generate-session", "POST", true, [], [], input, options);
  }

  postApiEmbedSessionToken(input = {}, options = {}) {
    return this.#json("/api/v1/embed/session/token", "POST", true, [], [], input, options);
  }

  postApiPublicAccountAgentsAgentChatAbort(input = {}, options = {}) {
    return this.#response("/api/v1/public/{account}/agents/{agent}/chat/abort", "POST", true, [], [], input, options);
  }

  postApiPublicAccountAgentsAgentChatStreamChatState(input = {}, options = {}) {
    return this.#json("/api/v1/public/{account}/agents/{agent}/chat/stream-chat-state", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  getAppsAppEvalResults(input = {}, options = {}) {
    return this.#json("/apps/{app}/eval_results", "GET", false, [], [], input, options);
  }

  getAppsAppEvalSets(input = {}, options = {}) {
    return this.#json("/apps/{app}/eval_sets", "GET", false, [], [], input, options);
  }

  getAppsAppUsersUserSessions(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions", "GET", false, [], [], input, options);
  }

  postAppsAppUsersUserSessions(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions", "POST", true, [], [], input, options);
  }

  getAppsAppUsersUserSessionsSession(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions/{session}", "GET", false, [], [], input, options);
  }

  postAppsAppUsersUserSessionsSession(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions/{session}", "POST", true, [], [], input, options);
  }

  patchAppsAppUsersUserSessionsSession(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions/{session}", "PATCH", true, [], [], input, options);
  }

  deleteAppsAppUsersUserSessionsSession(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions/{session}", "DELETE", false, [], [], input, options);
  }

  getAppsAppUsersUserSessionsSessionArtifacts(input = {}, options = {}) {
    return this.#json("/apps/{app}/users/{user}/sessions/{session}/artifacts", "GET", false, [], [], input, options);
  }

  getConsoleFile(input = {}, options = {}) {
    return this.#response("/console/{file}", "GET", false, [], [], input, options);
  }

  getDebugTraceSessionSession(input = {}, options = {}) {
    return this.#json("/debug/trace/session/{session}", "GET", false, [], [], input, options);
  }

  getDevAppsAppDebugTraceSessionSession(input = {}, options = {}) {
    return this.#json("/dev/apps/{app}/debug/trace/session/{session}", "GET", false, [], [], input, options);
  }

  getDevAppsAppEvalResults(input = {}, options = {}) {
    return this.#json("/dev/apps/{app}/eval_results", "GET", false, [], [], input, options);
  }

  getDevAppsAppEvalSets(input = {}, options = {}) {
    return this.#json("/dev/apps/{app}/eval_sets", "GET", false, [], [], input, options);
  }

  getDocs(input = {}, options = {}) {
    return this.#response("/docs", "GET", false, [], [], input, options);
  }

  getHealth(input = {}, options = {}) {
    return this.#json("/health", "GET", false, [], [], input, options);
  }

  getHealthz(input = {}, options = {}) {
    return this.#json("/healthz", "GET", false, [], [], input, options);
  }

  getListApps(input = {}, options = {}) {
    return this.#json("/list-apps", "GET", false, ["detailed","relative_path"], [], input, options);
  }

  postMcp(input = {}, options = {}) {
    return this.#response("/mcp", "POST", true, [], ["Mcp-Session-Id","X-Database","Idempotency-Key"], input, options);
  }

  deleteMcp(input = {}, options = {}) {
    return this.#response("/mcp", "DELETE", false, [], ["Mcp-Session-Id"], input, options);
  }

  getMetrics(input = {}, options = {}) {
    return this.#response("/metrics", "GET", false, [], [], input, options);
  }

  getOpenapiJson(input = {}, options = {}) {
    return this.#json("/openapi.json", "GET", false, [], [], input, options);
  }

  getReady(input = {}, options = {}) {
    return this.#json("/ready", "GET", false, [], [], input, options);
  }

  getReadyz(input = {}, options = {}) {
    return this.#json("/readyz", "GET", false, [], [], input, options);
  }

  postRun(input = {}, options = {}) {
    return this.#json("/run", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  postRunSse(input = {}, options = {}) {
    return this.#events("/run_sse", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  postAgentAsk(input = {}, options = {}) {
    return this.#events("/v1/agent/ask", "POST", true, [], ["Last-Event-ID","Idempotency-Key"], input, options);
  }

  getAgentRuns(input = {}, options = {}) {
    return this.#json("/v1/agent/runs", "GET", false, ["limit","page_token"], [], input, options);
  }

  getAgentRunsRunId(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}", "GET", false, [], [], input, options);
  }

  getAgentRunsRunIdApprovals(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}/approvals", "GET", false, [], [], input, options);
  }

  postAgentRunsRunIdApprovals(input = {}, options = {}) {
    return this.#events("/v1/agent/runs/{run_id}/approvals", "POST", true, [], [], input, options);
  }

  postAgentRunsRunIdCancel(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}/cancel", "POST", false, [], [], input, options);
  }

  getAgentRunsRunIdEvents(input = {}, options = {}) {
    return this.#events("/v1/agent/runs/{run_id}/events", "GET", false, [], ["Last-Event-ID"], input, options);
  }

  getAgentRunsRunIdFeedback(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}/feedback", "GET", false, [], [], input, options);
  }

  postAgentRunsRunIdFeedback(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}/feedback", "POST", true, [], [], input, options);
  }

  deleteAgentRunsRunIdFeedback(input = {}, options = {}) {
    return this.#json("/v1/agent/runs/{run_id}/feedback", "DELETE", false, [], [], input, options);
  }

  getAgentSessions(input = {}, options = {}) {
    return this.#json("/v1/agent/sessions", "GET", false, ["limit","page_token"], [], input, options);
  }

  getAgentSessionsId(input = {}, options = {}) {
    return this.#json("/v1/agent/sessions/{id}", "GET", false, [], [], input, options);
  }

  deleteAgentSessionsId(input = {}, options = {}) {
    return this.#json("/v1/agent/sessions/{id}", "DELETE", false, [], [], input, options);
  }

  getAgentSessionsIdTurns(input = {}, options = {}) {
    return this.#json("/v1/agent/sessions/{id}/turns", "GET", false, [], [], input, options);
  }

  getAudit(input = {}, options = {}) {
    return this.#json("/v1/audit", "GET", false, ["after","limit"], [], input, options);
  }

  getAuditVerify(input = {}, options = {}) {
    return this.#json("/v1/audit/verify", "GET", false, [], [], input, options);
  }

  postBackup(input = {}, options = {}) {
    return this.#json("/v1/backup", "POST", true, [], [], input, options);
  }

  getCaller(input = {}, options = {}) {
    return this.#json("/v1/caller", "GET", false, [], [], input, options);
  }

  patchCatalogDatabasesDatabase(input = {}, options = {}) {
    return this.#json("/v1/catalog/databases/{database}", "PATCH", true, [], [], input, options);
  }

  getCatalogMetrics(input = {}, options = {}) {
    return this.#json("/v1/catalog/metrics", "GET", false, ["database","limit","page_token"], [], input, options);
  }

  postCatalogMetrics(input = {}, options = {}) {
    return this.#json("/v1/catalog/metrics", "POST", true, [], [], input, options);
  }

  deleteCatalogMetricsId(input = {}, options = {}) {
    return this.#json("/v1/catalog/metrics/{id}", "DELETE", false, [], [], input, options);
  }

  getCatalogQueryProposals(input = {}, options = {}) {
    return this.#json("/v1/catalog/query-proposals", "GET", false, ["state","limit","page_token"], [], input, options);
  }

  postCatalogQueryProposalsIdAccept(input = {}, options = {}) {
    return this.#json("/v1/catalog/query-proposals/{id}/accept", "POST", false, [], [], input, options);
  }

  postCatalogQueryProposalsIdReject(input = {}, options = {}) {
    return this.#json("/v1/catalog/query-proposals/{id}/reject", "POST", false, [], [], input, options);
  }

  getCatalogRelationships(input = {}, options = {}) {
    return this.#json("/v1/catalog/relationships", "GET", false, ["database","table","limit","page_token"], [], input, options);
  }

  postCatalogRelationships(input = {}, options = {}) {
    return this.#json("/v1/catalog/relationships", "POST", true, [], [], input, options);
  }

  deleteCatalogRelationshipsId(input = {}, options = {}) {
    return this.#json("/v1/catalog/relationships/{id}", "DELETE", false, [], [], input, options);
  }

  getCatalogSchema(input = {}, options = {}) {
    return this.#json("/v1/catalog/schema", "GET", false, ["database","limit","page_token"], [], input, options);
  }

  getCatalogSearch(input = {}, options = {}) {
    return this.#json("/v1/catalog/search", "GET", false, ["q","database","limit"], [], input, options);
  }

  getCatalogTablesTable(input = {}, options = {}) {
    return this.#json("/v1/catalog/tables/{table}", "GET", false, ["database"], [], input, options);
  }

  patchCatalogTablesTable(input = {}, options = {}) {
    return this.#json("/v1/catalog/tables/{table}", "PATCH", true, ["database"], [], input, options);
  }

  getCatalogTablesTableProfile(input = {}, options = {}) {
    return this.#json("/v1/catalog/tables/{table}/profile", "GET", false, ["database"], [], input, options);
  }

  getCatalogVerifiedQueries(input = {}, options = {}) {
    return this.#json("/v1/catalog/verified-queries", "GET", false, ["database","limit","page_token"], [], input, options);
  }

  postCatalogVerifiedQueries(input = {}, options = {}) {
    return this.#json("/v1/catalog/verified-queries", "POST", true, [], [], input, options);
  }

  deleteCatalogVerifiedQueriesId(input = {}, options = {}) {
    return this.#json("/v1/catalog/verified-queries/{id}", "DELETE", false, [], [], input, options);
  }

  getChatCompletions(input = {}, options = {}) {
    return this.#json("/v1/chat/completions", "GET", false, ["after","limit","order","model","metadata"], [], input, options);
  }

  postChatCompletions(input = {}, options = {}) {
    return this.#response("/v1/chat/completions", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  getChatCompletionsId(input = {}, options = {}) {
    return this.#json("/v1/chat/completions/{id}", "GET", false, [], [], input, options);
  }

  postChatCompletionsId(input = {}, options = {}) {
    return this.#json("/v1/chat/completions/{id}", "POST", true, [], [], input, options);
  }

  deleteChatCompletionsId(input = {}, options = {}) {
    return this.#json("/v1/chat/completions/{id}", "DELETE", false, [], [], input, options);
  }

  getChatCompletionsIdMessages(input = {}, options = {}) {
    return this.#json("/v1/chat/completions/{id}/messages", "GET", false, ["after","limit","order"], [], input, options);
  }

  postCheck(input = {}, options = {}) {
    return this.#json("/v1/check", "POST", false, ["remove_orphans","grace_seconds","contents"], [], input, options);
  }

  postComplete(input = {}, options = {}) {
    return this.#json("/v1/complete", "POST", true, [], [], input, options);
  }

  postCompletions(input = {}, options = {}) {
    return this.#response("/v1/completions", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  postConversations(input = {}, options = {}) {
    return this.#json("/v1/conversations", "POST", true, [], [], input, options);
  }

  getConversationsId(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}", "GET", false, [], [], input, options);
  }

  postConversationsId(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}", "POST", true, [], [], input, options);
  }

  deleteConversationsId(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}", "DELETE", false, [], [], input, options);
  }

  getConversationsIdItems(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}/items", "GET", false, ["after","limit","order","include"], [], input, options);
  }

  postConversationsIdItems(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}/items", "POST", true, ["include"], [], input, options);
  }

  getConversationsIdItemsItem(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}/items/{item}", "GET", false, ["include"], [], input, options);
  }

  deleteConversationsIdItemsItem(input = {}, options = {}) {
    return this.#json("/v1/conversations/{id}/items/{item}", "DELETE", false, [], [], input, options);
  }

  postEmbeddings(input = {}, options = {}) {
    return this.#json("/v1/embeddings", "POST", true, [], [], input, options);
  }

  getFiles(input = {}, options = {}) {
    return this.#json("/v1/files", "GET", false, ["after","limit","order","purpose"], [], input, options);
  }

  postFiles(input = {}, options = {}) {
    return this.#json("/v1/files", "POST", true, [], [], input, options);
  }

  getFilesId(input = {}, options = {}) {
    return this.#json("/v1/files/{id}", "GET", false, [], [], input, options);
  }

  deleteFilesId(input = {}, options = {}) {
    return this.#json("/v1/files/{id}", "DELETE", false, [], [], input, options);
  }

  getFilesIdContent(input = {}, options = {}) {
    return this.#response("/v1/files/{id}/content", "GET", false, [], [], input, options);
  }

  postImport(input = {}, options = {}) {
    return this.#json("/v1/import", "POST", true, ["table","format","database","if_exists","filename","types","sheet","range","has_header","delimiter","quote","escape","encoding","skip","comment","null_value","null_padding","allow_quoted_nulls","date_format","timestamp_format","decimal_separator","thousands","ignore_errors","rejects","compression"], [], input, options);
  }

  postImportTree(input = {}, options = {}) {
    return this.#response("/v1/import/tree", "POST", true, [], [], input, options);
  }

  postMessages(input = {}, options = {}) {
    return this.#response("/v1/messages", "POST", true, ["beta"], ["anthropic-version","anthropic-beta","Idempotency-Key"], input, options);
  }

  postMessagesCountTokens(input = {}, options = {}) {
    return this.#json("/v1/messages/count_tokens", "POST", true, ["beta"], ["anthropic-version","anthropic-beta"], input, options);
  }

  getModels(input = {}, options = {}) {
    return this.#json("/v1/models", "GET", false, ["limit","after_id","before_id","lifecycle","beta"], [], input, options);
  }

  getModelsId(input = {}, options = {}) {
    return this.#json("/v1/models/{id}", "GET", false, ["beta"], [], input, options);
  }

  getPolicy(input = {}, options = {}) {
    return this.#json("/v1/policy", "GET", false, [], [], input, options);
  }

  postPolicy(input = {}, options = {}) {
    return this.#json("/v1/policy", "POST", true, ["dry_run"], [], input, options);
  }

  postPolicyExplain(input = {}, options = {}) {
    return this.#json("/v1/policy/explain", "POST", true, [], [], input, options);
  }

  postPolicyTest(input = {}, options = {}) {
    return this.#json("/v1/policy/test", "POST", true, [], [], input, options);
  }

  getQueries(input = {}, options = {}) {
    return this.#json("/v1/queries", "GET", false, [], [], input, options);
  }

  deleteQueriesId(input = {}, options = {}) {
    return this.#json("/v1/queries/{id}", "DELETE", false, [], [], input, options);
  }

  postQueriesIdCancel(input = {}, options = {}) {
    return this.#json("/v1/queries/{id}/cancel", "POST", false, [], [], input, options);
  }

  postQuery(input = {}, options = {}) {
    return this.#response("/v1/query", "POST", true, ["format"], ["X-Database","Accept","X-Querent-Max-Wall-Clock-Ms","X-Querent-Max-Memory-Bytes","X-Querent-Wire-Types"], input, options);
  }

  getResponses(input = {}, options = {}) {
    return this.#response("/v1/responses", "GET", false, [], [], input, options);
  }

  postResponses(input = {}, options = {}) {
    return this.#response("/v1/responses", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  postResponsesCompact(input = {}, options = {}) {
    return this.#json("/v1/responses/compact", "POST", true, [], ["Idempotency-Key"], input, options);
  }

  postResponsesInputTokens(input = {}, options = {}) {
    return this.#json("/v1/responses/input_tokens", "POST", true, [], [], input, options);
  }

  getResponsesId(input = {}, options = {}) {
    return this.#response("/v1/responses/{id}", "GET", false, ["stream","starting_after","include","include_obfuscation"], [], input, options);
  }

  postResponsesId(input = {}, options = {}) {
    return this.#json("/v1/responses/{id}", "POST", true, [], [], input, options);
  }

  deleteResponsesId(input = {}, options = {}) {
    return this.#json("/v1/responses/{id}", "DELETE", false, [], [], input, options);
  }

  postResponsesIdCancel(input = {}, options = {}) {
    return this.#json("/v1/responses/{id}/cancel", "POST", false, [], [], input, options);
  }

  getResponsesIdInputItems(input = {}, options = {}) {
    return this.#json("/v1/responses/{id}/input_items", "GET", false, ["after","limit","order","include"], [], input, options);
  }

  getRestAuthMetadata(input = {}, options = {}) {
    return this.#json("/v1/rest/auth/metadata", "GET", false, [], [], input, options);
  }

  postRestMgmt(input = {}, options = {}) {
    return this.#json("/v1/rest/mgmt", "POST", true, [], [], input, options);
  }

  postRestQuery(input = {}, options = {}) {
    return this.#json("/v1/rest/query", "POST", true, [], [], input, options);
  }

  getSettings(input = {}, options = {}) {
    return this.#json("/v1/settings", "GET", false, [], [], input, options);
  }

  postSnapshotsExpire(input = {}, options = {}) {
    return this.#json("/v1/snapshots/expire", "POST", true, [], [], input, options);
  }

  getTokens(input = {}, options = {}) {
    return this.#json("/v1/tokens", "GET", false, ["limit","page_token"], [], input, options);
  }

  postTokens(input = {}, options = {}) {
    return this.#json("/v1/tokens", "POST", true, [], [], input, options);
  }

  deleteTokensId(input = {}, options = {}) {
    return this.#json("/v1/tokens/{id}", "DELETE", false, [], [], input, options);
  }

  postV2RestQuery(input = {}, options = {}) {
    return this.#json("/v2/rest/query", "POST", true, [], [], input, options);
  }

  getVersion(input = {}, options = {}) {
    return this.#json("/version", "GET", false, [], [], input, options);
  }

  async #response(path, method, hasBody, query, headers, input, { signal } = {}) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
      if (input[name] === undefined) throw new TypeError(`${name} is missing`);
      return encodeURIComponent(input[name]);
    });
    const params = new URLSearchParams();
    for (const name of query) {
      const value = input[name];
      if (value === undefined || value === null) continue;
      if (Array.isArray(value)) for (const entry of value) params.append(name, String(entry));
      else if (typeof value === "object") for (const key in value) params.set(`${name}[${key}]`, String(value[key]));
      else params.set(name, String(value));
    }
    const sent = new Headers();
    for (const name of headers) if (input[name] !== undefined && input[name] !== null) sent.set(name, asHeader(String(input[name])));
    if (this.#token) sent.set("authorization", `Bearer ${this.#token}`);
    let body;
    if (hasBody && input.contentType !== undefined) {
      sent.set("content-type", input.contentType);
      // A form says its own boundary.
      if (input.contentType === "multipart/form-data") sent.delete("content-type");
      body = input.body;
    } else if (hasBody) {
      sent.set("content-type", "application/json");
      body = JSON.stringify(input.body ?? {});
    }
    const address = this.#url + filled + (params.size > 0 ? `?${params}` : "");
    // Browsers refuse to call it as a method of something else.
    const send = this.#fetch;
    const response = await send(address, { method, headers: sent, body, signal });
    if (response.ok) return response;
    throw QuerentError.read(await response.text(), response.status, response.headers.get("x-querent-error-code"));
  }

  async #json(...request) {
    return (await this.#response(...request)).json();
  }

  async *#events(...request) {
    const response = await this.#response(...request);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const frames = (rest + piece.value).replace(/\r\n/g, "\n").split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const event = readEvent(frame);
          if (event) yield event;
        }
      }
    } finally {
      await reader.cancel();
    }
  }
}

function readEvent(frame) {
  const found = { event: "message", id: null };
  const data = [];
  for (const line of frame.split("\n")) {
    const [, name, value] = /^(event|data|id): ?(.*)$/.exec(line) ?? [];
    if (name === "data") data.push(value);
    else if (name) found[name] = value;
  }
  if (data.length === 0) return null;
  const text = data.join("\n");
  try {
    return { ...found, data: JSON.parse(text) };
  } catch {
    return { ...found, data: text };
  }
}

/** A text as a header can carry it: UTF-8, a byte a character. */
function asHeader(text) {
  return [...new TextEncoder().encode(text)].map((byte) => String.fromCharCode(byte)).join("");
}
