// Made by scripts/typescript_client.mjs of Querent 0.1.0.

/** What the server said no with. `code` is stable. */
export declare class QuerentError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  constructor(status: number, code: string, message: string, hint?: string | null);

  /** Reads the body of a refusal, or the last line of rows that break off; `code` is what a header says. */
  static read(text: string, status: number, code?: string | null): QuerentError;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface ClientOptions {
  token?: string;
  fetch?: typeof globalThis.fetch;
}

/** A server-sent event. */
export interface ServerEvent {
  event: string;
  id: string | null;
  data: any;
}

export declare class QuerentClient {
  constructor(url: string | URL, options?: ClientOptions);

  /** Name, version and routes; for a browser the console. `GET /` */
  get(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** The agent's card. `GET /.well-known/agent-card.json` */
  getWellKnownAgentCardJson(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** The same, where older clients look. `GET /.well-known/agent.json` */
  getWellKnownAgentJson(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** One request of JSON-RPC, in the versions 1.0 and 0.3. `POST /a2a` */
  postA2a(input: PostA2aInput, options?: CallOptions): Promise<Response>;

  /** Runs the agent on a conversation. `POST /ag-ui` */
  postAgUi(input: PostAgUiInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** An uploaded file's bytes. `GET /agentengine/api/v1/AttachmentContent` */
  getAgentengineApiAttachmentContent(input: GetAgentengineApiAttachmentContentInput, options?: CallOptions): Promise<any>;

  /** Cancels a run. `POST /agentengine/api/v1/CancelRun` */
  postAgentengineApiCancelRun(input: PostAgentengineApiCancelRunInput, options?: CallOptions): Promise<any>;

  /** Creates a session. `POST /agentengine/api/v1/CreateSession` */
  postAgentengineApiCreateSession(input: PostAgentengineApiCreateSessionInput, options?: CallOptions): Promise<any>;

  /** Takes back what you said of a response. `POST /agentengine/api/v1/DeleteResponseFeedback` */
  postAgentengineApiDeleteResponseFeedback(input: PostAgentengineApiDeleteResponseFeedbackInput, options?: CallOptions): Promise<any>;

  /** Deletes a session with its runs. `POST /agentengine/api/v1/DeleteSession` */
  postAgentengineApiDeleteSession(input: PostAgentengineApiDeleteSessionInput, options?: CallOptions): Promise<any>;

  /** What the web interface asks first. `POST /agentengine/api/v1/GetAgentUiBootstrap` */
  postAgentengineApiGetAgentUiBootstrap(input: PostAgentengineApiGetAgentUiBootstrapInput, options?: CallOptions): Promise<any>;

  /** What you said of a response. `POST /agentengine/api/v1/GetResponseFeedback` */
  postAgentengineApiGetResponseFeedback(input: PostAgentengineApiGetResponseFeedbackInput, options?: CallOptions): Promise<any>;

  /** One session. `POST /agentengine/api/v1/GetSession` */
  postAgentengineApiGetSession(input: PostAgentengineApiGetSessionInput, options?: CallOptions): Promise<any>;

  /** Models to choose from. `POST /agentengine/api/v1/ListAgentModels` */
  postAgentengineApiListAgentModels(input: PostAgentengineApiListAgentModelsInput, options?: CallOptions): Promise<any>;

  /** Events of a session's newest runs. `POST /agentengine/api/v1/ListSessionEvents` */
  postAgentengineApiListSessionEvents(input: PostAgentengineApiListSessionEventsInput, options?: CallOptions): Promise<any>;

  /** Messages of a session's newest runs. `POST /agentengine/api/v1/ListSessionMessages` */
  postAgentengineApiListSessionMessages(input: PostAgentengineApiListSessionMessagesInput, options?: CallOptions): Promise<any>;

  /** Lists sessions. `POST /agentengine/api/v1/ListSessions` */
  postAgentengineApiListSessions(input: PostAgentengineApiListSessionsInput, options?: CallOptions): Promise<any>;

  /** Runs the agent. `POST /agentengine/api/v1/RunAgent` */
  postAgentengineApiRunAgent(input: PostAgentengineApiRunAgentInput, options?: CallOptions): Promise<Response>;

  /** A run's session events, those that were and those that come, then `[DONE]`. `GET /agentengine/api/v1/SubscribeRunEvents` */
  getAgentengineApiSubscribeRunEvents(input?: GetAgentengineApiSubscribeRunEventsInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** Uploads a file that messages name by its id. `POST /agentengine/api/v1/UploadFile` */
  postAgentengineApiUploadFile(input: PostAgentengineApiUploadFileInput, options?: CallOptions): Promise<any>;

  /** Says that a response is right or wrong. `POST /agentengine/api/v1/UpsertResponseFeedback` */
  postAgentengineApiUpsertResponseFeedback(input: PostAgentengineApiUpsertResponseFeedbackInput, options?: CallOptions): Promise<any>;

  /** Answers a question, with its conversation. `POST /api/chat` */
  postApiChat(input: PostApiChatInput, options?: CallOptions): Promise<Response>;

  /** 501: there are no checks here. `POST /api/checks/execute` */
  postApiChecksExecute(input: PostApiChecksExecuteInput, options?: CallOptions): Promise<Response>;

  /** The server, its models, and with `full` its tools and limits. `GET /api/info` */
  getApiInfo(input?: GetApiInfoInput, options?: CallOptions): Promise<any>;

  /** The models' names. `GET /api/model` */
  getApiModel(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** 501: there are no OAuth toolsets here. `POST /api/oauth/callback` */
  postApiOauthCallback(input: PostApiOauthCallbackInput, options?: CallOptions): Promise<Response>;

  /** A session of a user, `{sessionId}`. `POST /api/v1/embed/generate-session` */
  postApiEmbedGenerateSession(input: PostApiEmbedGenerateSessionInput, options?: CallOptions): Promise<any>;

  /** The token of a session, `{token}`. `POST /api/v1/embed/session/token` */
  postApiEmbedSessionToken(input: PostApiEmbedSessionTokenInput, options?: CallOptions): Promise<any>;

  /** Ends what a thread is doing. `POST /api/v1/public/{account}/agents/{agent}/chat/abort` */
  postApiPublicAccountAgentsAgentChatAbort(input: PostApiPublicAccountAgentsAgentChatAbortInput, options?: CallOptions): Promise<Response>;

  /** Sends a message to a thread, or reads it. `POST /api/v1/public/{account}/agents/{agent}/chat/stream-chat-state` */
  postApiPublicAccountAgentsAgentChatStreamChatState(input: PostApiPublicAccountAgentsAgentChatStreamChatStateInput, options?: CallOptions): Promise<any>;

  /** An empty list, for the web interface. `GET /apps/{app}/eval_results` */
  getAppsAppEvalResults(input: GetAppsAppEvalResultsInput, options?: CallOptions): Promise<any>;

  /** An empty list, for the web interface. `GET /apps/{app}/eval_sets` */
  getAppsAppEvalSets(input: GetAppsAppEvalSetsInput, options?: CallOptions): Promise<any>;

  /** Sessions of a user. `GET /apps/{app}/users/{user}/sessions` */
  getAppsAppUsersUserSessions(input: GetAppsAppUsersUserSessionsInput, options?: CallOptions): Promise<any>;

  /** Creates a session. `POST /apps/{app}/users/{user}/sessions` */
  postAppsAppUsersUserSessions(input: PostAppsAppUsersUserSessionsInput, options?: CallOptions): Promise<any>;

  /** One session with its state and events. `GET /apps/{app}/users/{user}/sessions/{session}` */
  getAppsAppUsersUserSessionsSession(input: GetAppsAppUsersUserSessionsSessionInput, options?: CallOptions): Promise<any>;

  /** Creates a session of this id. `POST /apps/{app}/users/{user}/sessions/{session}` */
  postAppsAppUsersUserSessionsSession(input: PostAppsAppUsersUserSessionsSessionInput, options?: CallOptions): Promise<any>;

  /** Merges into a session's state. `PATCH /apps/{app}/users/{user}/sessions/{session}` */
  patchAppsAppUsersUserSessionsSession(input: PatchAppsAppUsersUserSessionsSessionInput, options?: CallOptions): Promise<any>;

  /** Deletes a session with its runs. `DELETE /apps/{app}/users/{user}/sessions/{session}` */
  deleteAppsAppUsersUserSessionsSession(input: DeleteAppsAppUsersUserSessionsSessionInput, options?: CallOptions): Promise<any>;

  /** An empty list: sessions have no artifacts. `GET /apps/{app}/users/{user}/sessions/{session}/artifacts` */
  getAppsAppUsersUserSessionsSessionArtifacts(input: GetAppsAppUsersUserSessionsSessionArtifactsInput, options?: CallOptions): Promise<any>;

  /** A file of the console. `GET /console/{file}` */
  getConsoleFile(input: GetConsoleFileInput, options?: CallOptions): Promise<Response>;

  /** An empty list, for the web interface. `GET /debug/trace/session/{session}` */
  getDebugTraceSessionSession(input: GetDebugTraceSessionSessionInput, options?: CallOptions): Promise<any>;

  /** The same, as ADK 2 asks. `GET /dev/apps/{app}/debug/trace/session/{session}` */
  getDevAppsAppDebugTraceSessionSession(input: GetDevAppsAppDebugTraceSessionSessionInput, options?: CallOptions): Promise<any>;

  /** The same, as ADK 2 asks. `GET /dev/apps/{app}/eval_results` */
  getDevAppsAppEvalResults(input: GetDevAppsAppEvalResultsInput, options?: CallOptions): Promise<any>;

  /** The same, as ADK 2 asks. `GET /dev/apps/{app}/eval_sets` */
  getDevAppsAppEvalSets(input: GetDevAppsAppEvalSetsInput, options?: CallOptions): Promise<any>;

  /** This document as a page to read. `GET /docs` */
  getDocs(input?: Record<string, never>, options?: CallOptions): Promise<Response>;

  /** The process answers. `GET /health` */
  getHealth(input?: Record<string, never>, options?: CallOptions): Promise<GetHealthAnswer>;

  /** The process answers. `GET /healthz` */
  getHealthz(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** The agent's name. `GET /list-apps` */
  getListApps(input?: GetListAppsInput, options?: CallOptions): Promise<any>;

  /** One JSON-RPC message; 202 without a body where it is no request. `POST /mcp` */
  postMcp(input: PostMcpInput, options?: CallOptions): Promise<Response>;

  /** Ends a session. `DELETE /mcp` */
  deleteMcp(input?: DeleteMcpInput, options?: CallOptions): Promise<Response>;

  /** Prometheus text. `GET /metrics` */
  getMetrics(input?: Record<string, never>, options?: CallOptions): Promise<Response>;

  /** This document. `GET /openapi.json` */
  getOpenapiJson(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** The server takes requests; 503 once it is stopping. `GET /ready` */
  getReady(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** The server takes requests; 503 once it is stopping. `GET /readyz` */
  getReadyz(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** Runs the agent; a list of ADK events. `POST /run` */
  postRun(input: PostRunInput, options?: CallOptions): Promise<any>;

  /** Runs the agent; ADK events as server-sent events. `POST /run_sse` */
  postRunSse(input: PostRunSseInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** A question; the answer as server-sent events, `run_finished` always last. `POST /v1/agent/ask` */
  postAgentAsk(input: PostAgentAskInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** Your runs, newest first; all runs for administrators. `GET /v1/agent/runs` */
  getAgentRuns(input?: GetAgentRunsInput, options?: CallOptions): Promise<GetAgentRunsAnswer>;

  /** One run with its whole trace. `GET /v1/agent/runs/{run_id}` */
  getAgentRunsRunId(input: GetAgentRunsRunIdInput, options?: CallOptions): Promise<GetAgentRunsRunIdAnswer>;

  /** The calls of a run that a person is asked about. `GET /v1/agent/runs/{run_id}/approvals` */
  getAgentRunsRunIdApprovals(input: GetAgentRunsRunIdApprovalsInput, options?: CallOptions): Promise<GetAgentRunsRunIdApprovalsAnswer>;

  /** Approves or denies the calls that a paused run waits for; the run that goes on, as server-sent events. `POST /v1/agent/runs/{run_id}/approvals` */
  postAgentRunsRunIdApprovals(input: PostAgentRunsRunIdApprovalsInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** Stops a run; its stream still ends with `run_finished`. `POST /v1/agent/runs/{run_id}/cancel` */
  postAgentRunsRunIdCancel(input: PostAgentRunsRunIdCancelInput, options?: CallOptions): Promise<PostAgentRunsRunIdCancelAnswer>;

  /** A run's events as `ask` streams them, also of one in progress. `GET /v1/agent/runs/{run_id}/events` */
  getAgentRunsRunIdEvents(input: GetAgentRunsRunIdEventsInput, options?: CallOptions): AsyncGenerator<ServerEvent, void, undefined>;

  /** What was said of a run's answer. `GET /v1/agent/runs/{run_id}/feedback` */
  getAgentRunsRunIdFeedback(input: GetAgentRunsRunIdFeedbackInput, options?: CallOptions): Promise<GetAgentRunsRunIdFeedbackAnswer>;

  /** Says that a run's answer is right, wrong, or what it should be; what is right is proposed as a verified query. `POST /v1/agent/runs/{run_id}/feedback` */
  postAgentRunsRunIdFeedback(input: PostAgentRunsRunIdFeedbackInput, options?: CallOptions): Promise<PostAgentRunsRunIdFeedbackAnswer>;

  /** Takes back what you said of a run's answer. `DELETE /v1/agent/runs/{run_id}/feedback` */
  deleteAgentRunsRunIdFeedback(input: DeleteAgentRunsRunIdFeedbackInput, options?: CallOptions): Promise<DeleteAgentRunsRunIdFeedbackAnswer>;

  /** Your conversations, newest activity first. `GET /v1/agent/sessions` */
  getAgentSessions(input?: GetAgentSessionsInput, options?: CallOptions): Promise<GetAgentSessionsAnswer>;

  /** One conversation. `GET /v1/agent/sessions/{id}` */
  getAgentSessionsId(input: GetAgentSessionsIdInput, options?: CallOptions): Promise<GetAgentSessionsIdAnswer>;

  /** Deletes a conversation with its runs. `DELETE /v1/agent/sessions/{id}` */
  deleteAgentSessionsId(input: DeleteAgentSessionsIdInput, options?: CallOptions): Promise<DeleteAgentSessionsIdAnswer>;

  /** What was asked and answered, oldest first. `GET /v1/agent/sessions/{id}/turns` */
  getAgentSessionsIdTurns(input: GetAgentSessionsIdTurnsInput, options?: CallOptions): Promise<GetAgentSessionsIdTurnsAnswer>;

  /** Records of the audit log, oldest first. `GET /v1/audit` */
  getAudit(input?: GetAuditInput, options?: CallOptions): Promise<GetAuditAnswer>;

  /** Whether each record of the audit log stands on the one before it. `GET /v1/audit/verify` */
  getAuditVerify(input?: Record<string, never>, options?: CallOptions): Promise<GetAuditVerifyAnswer>;

  /** Copies the data folder to another one of the server's machine. `POST /v1/backup` */
  postBackup(input: PostBackupInput, options?: CallOptions): Promise<PostBackupAnswer>;

  /** Whom the server takes you for: your role, and the databases that you see. `GET /v1/caller` */
  getCaller(input?: Record<string, never>, options?: CallOptions): Promise<GetCallerAnswer>;

  /** Sets a database's comment. `PATCH /v1/catalog/databases/{database}` */
  patchCatalogDatabasesDatabase(input: PatchCatalogDatabasesDatabaseInput, options?: CallOptions): Promise<PatchCatalogDatabasesDatabaseAnswer>;

  /** Names for numbers. `GET /v1/catalog/metrics` */
  getCatalogMetrics(input?: GetCatalogMetricsInput, options?: CallOptions): Promise<GetCatalogMetricsAnswer>;

  /** Defines a metric, after it ran for the caller. `POST /v1/catalog/metrics` */
  postCatalogMetrics(input: PostCatalogMetricsInput, options?: CallOptions): Promise<PostCatalogMetricsAnswer>;

  /** Drops a metric. `DELETE /v1/catalog/metrics/{id}` */
  deleteCatalogMetricsId(input: DeleteCatalogMetricsIdInput, options?: CallOptions): Promise<DeleteCatalogMetricsIdAnswer>;

  /** Verified queries that feedback proposes. `GET /v1/catalog/query-proposals` */
  getCatalogQueryProposals(input?: GetCatalogQueryProposalsInput, options?: CallOptions): Promise<GetCatalogQueryProposalsAnswer>;

  /** Makes a proposal a verified query, after it ran for the caller. `POST /v1/catalog/query-proposals/{id}/accept` */
  postCatalogQueryProposalsIdAccept(input: PostCatalogQueryProposalsIdAcceptInput, options?: CallOptions): Promise<PostCatalogQueryProposalsIdAcceptAnswer>;

  /** Sets a proposal aside. `POST /v1/catalog/query-proposals/{id}/reject` */
  postCatalogQueryProposalsIdReject(input: PostCatalogQueryProposalsIdRejectInput, options?: CallOptions): Promise<PostCatalogQueryProposalsIdRejectAnswer>;

  /** Declared relationships, of one table where both parameters name it. `GET /v1/catalog/relationships` */
  getCatalogRelationships(input?: GetCatalogRelationshipsInput, options?: CallOptions): Promise<GetCatalogRelationshipsAnswer>;

  /** Declares a relationship. `POST /v1/catalog/relationships` */
  postCatalogRelationships(input: PostCatalogRelationshipsInput, options?: CallOptions): Promise<PostCatalogRelationshipsAnswer>;

  /** Drops a relationship. `DELETE /v1/catalog/relationships/{id}` */
  deleteCatalogRelationshipsId(input: DeleteCatalogRelationshipsIdInput, options?: CallOptions): Promise<DeleteCatalogRelationshipsIdAnswer>;

  /** Databases, tables and columns, a page at a time. `GET /v1/catalog/schema` */
  getCatalogSchema(input?: GetCatalogSchemaInput, options?: CallOptions): Promise<GetCatalogSchemaAnswer>;

  /** Tables by name, text, meaning, values and joins. `GET /v1/catalog/search` */
  getCatalogSearch(input: GetCatalogSearchInput, options?: CallOptions): Promise<GetCatalogSearchAnswer>;

  /** One table with its columns and comments. `GET /v1/catalog/tables/{table}` */
  getCatalogTablesTable(input: GetCatalogTablesTableInput, options?: CallOptions): Promise<GetCatalogTablesTableAnswer>;

  /** Sets comments of a table and of its columns. `PATCH /v1/catalog/tables/{table}` */
  patchCatalogTablesTable(input: PatchCatalogTablesTableInput, options?: CallOptions): Promise<PatchCatalogTablesTableAnswer>;

  /** What a table's columns hold, as the caller may see it: nulls, distinct and frequent values, extremes, histograms. `GET /v1/catalog/tables/{table}/profile` */
  getCatalogTablesTableProfile(input: GetCatalogTablesTableProfileInput, options?: CallOptions): Promise<GetCatalogTablesTableProfileAnswer>;

  /** Questions with SQL that answers them. `GET /v1/catalog/verified-queries` */
  getCatalogVerifiedQueries(input?: GetCatalogVerifiedQueriesInput, options?: CallOptions): Promise<GetCatalogVerifiedQueriesAnswer>;

  /** Stores a question with its SQL, after the SQL ran for the caller. `POST /v1/catalog/verified-queries` */
  postCatalogVerifiedQueries(input: PostCatalogVerifiedQueriesInput, options?: CallOptions): Promise<PostCatalogVerifiedQueriesAnswer>;

  /** Drops a verified query. `DELETE /v1/catalog/verified-queries/{id}` */
  deleteCatalogVerifiedQueriesId(input: DeleteCatalogVerifiedQueriesIdInput, options?: CallOptions): Promise<DeleteCatalogVerifiedQueriesIdAnswer>;

  /** Stored completions. `GET /v1/chat/completions` */
  getChatCompletions(input?: GetChatCompletionsInput, options?: CallOptions): Promise<any>;

  /** The next message of a chat. `POST /v1/chat/completions` */
  postChatCompletions(input: PostChatCompletionsInput, options?: CallOptions): Promise<Response>;

  /** A stored completion. `GET /v1/chat/completions/{id}` */
  getChatCompletionsId(input: GetChatCompletionsIdInput, options?: CallOptions): Promise<any>;

  /** Replaces its metadata. `POST /v1/chat/completions/{id}` */
  postChatCompletionsId(input: PostChatCompletionsIdInput, options?: CallOptions): Promise<any>;

  /** Deletes it. `DELETE /v1/chat/completions/{id}` */
  deleteChatCompletionsId(input: DeleteChatCompletionsIdInput, options?: CallOptions): Promise<any>;

  /** What it was asked. `GET /v1/chat/completions/{id}/messages` */
  getChatCompletionsIdMessages(input: GetChatCompletionsIdMessagesInput, options?: CallOptions): Promise<any>;

  /** Whether the data folder is whole. `POST /v1/check` */
  postCheck(input?: PostCheckInput, options?: CallOptions): Promise<PostCheckAnswer>;

  /** What may stand at a place of a statement. `POST /v1/complete` */
  postComplete(input: PostCompleteInput, options?: CallOptions): Promise<PostCompleteAnswer>;

  /** The answer to a prompt, as older libraries ask for it. `POST /v1/completions` */
  postCompletions(input: PostCompletionsInput, options?: CallOptions): Promise<Response>;

  /** Creates a conversation. `POST /v1/conversations` */
  postConversations(input: PostConversationsInput, options?: CallOptions): Promise<any>;

  /** A conversation. `GET /v1/conversations/{id}` */
  getConversationsId(input: GetConversationsIdInput, options?: CallOptions): Promise<any>;

  /** Replaces a conversation's metadata. `POST /v1/conversations/{id}` */
  postConversationsId(input: PostConversationsIdInput, options?: CallOptions): Promise<any>;

  /** Deletes a conversation; its responses stay. `DELETE /v1/conversations/{id}` */
  deleteConversationsId(input: DeleteConversationsIdInput, options?: CallOptions): Promise<any>;

  /** Items of a conversation. `GET /v1/conversations/{id}/items` */
  getConversationsIdItems(input: GetConversationsIdItemsInput, options?: CallOptions): Promise<any>;

  /** Adds items, up to 20 at once. `POST /v1/conversations/{id}/items` */
  postConversationsIdItems(input: PostConversationsIdItemsInput, options?: CallOptions): Promise<any>;

  /** One item. `GET /v1/conversations/{id}/items/{item}` */
  getConversationsIdItemsItem(input: GetConversationsIdItemsItemInput, options?: CallOptions): Promise<any>;

  /** Deletes an item. `DELETE /v1/conversations/{id}/items/{item}` */
  deleteConversationsIdItemsItem(input: DeleteConversationsIdItemsItemInput, options?: CallOptions): Promise<any>;

  /** Vectors of texts, from the embedder of the settings. `POST /v1/embeddings` */
  postEmbeddings(input: PostEmbeddingsInput, options?: CallOptions): Promise<any>;

  /** Your files. `GET /v1/files` */
  getFiles(input?: GetFilesInput, options?: CallOptions): Promise<any>;

  /** Uploads a file that messages name by its id. `POST /v1/files` */
  postFiles(input: PostFilesInput, options?: CallOptions): Promise<any>;

  /** What is known of a file. `GET /v1/files/{id}` */
  getFilesId(input: GetFilesIdInput, options?: CallOptions): Promise<any>;

  /** Deletes a file. `DELETE /v1/files/{id}` */
  deleteFilesId(input: DeleteFilesIdInput, options?: CallOptions): Promise<any>;

  /** A file's content. `GET /v1/files/{id}/content` */
  getFilesIdContent(input: GetFilesIdContentInput, options?: CallOptions): Promise<Response>;

  /** A file that becomes rows of a table, all of it or nothing. `POST /v1/import` */
  postImport(input: PostImportInput, options?: CallOptions): Promise<PostImportAnswer>;

  /** Registers or refreshes the external tables of a tree of folders. `POST /v1/import/tree` */
  postImportTree(input: PostImportTreeInput, options?: CallOptions): Promise<Response>;

  /** The next message of a conversation. `POST /v1/messages` */
  postMessages(input: PostMessagesInput, options?: CallOptions): Promise<Response>;

  /** How many tokens a request has, estimated. `POST /v1/messages/count_tokens` */
  postMessagesCountTokens(input: PostMessagesCountTokensInput, options?: CallOptions): Promise<any>;

  /** The agent, then every configured model. `GET /v1/models` */
  getModels(input?: GetModelsInput, options?: CallOptions): Promise<GetModelsAnswer>;

  /** One model. `GET /v1/models/{id}` */
  getModelsId(input: GetModelsIdInput, options?: CallOptions): Promise<any>;

  /** Grants, row policies and masks, and the last versions. `GET /v1/policy` */
  getPolicy(input?: Record<string, never>, options?: CallOptions): Promise<GetPolicyAnswer>;

  /** Puts the policy that statements make in place of the one that holds. `POST /v1/policy` */
  postPolicy(input: PostPolicyInput, options?: CallOptions): Promise<PostPolicyAnswer>;

  /** What a caller may do with a table, and why. `POST /v1/policy/explain` */
  postPolicyExplain(input: PostPolicyExplainInput, options?: CallOptions): Promise<PostPolicyExplainAnswer>;

  /** Runs statements as callers and compares their answers. `POST /v1/policy/test` */
  postPolicyTest(input: PostPolicyTestInput, options?: CallOptions): Promise<PostPolicyTestAnswer>;

  /** Queries that run now: yours, or all for administrators. `GET /v1/queries` */
  getQueries(input?: Record<string, never>, options?: CallOptions): Promise<GetQueriesAnswer>;

  /** The same. `DELETE /v1/queries/{id}` */
  deleteQueriesId(input: DeleteQueriesIdInput, options?: CallOptions): Promise<DeleteQueriesIdAnswer>;

  /** Ends a query, which then fails with `cancelled`. `POST /v1/queries/{id}/cancel` */
  postQueriesIdCancel(input: PostQueriesIdCancelInput, options?: CallOptions): Promise<PostQueriesIdCancelAnswer>;

  /** One SQL statement or one KQL query; what changes something needs the role write. `POST /v1/query` */
  postQuery(input: PostQueryInput, options?: CallOptions): Promise<Response>;

  /** A WebSocket: `response.create` is a request, its events are answers. `GET /v1/responses` */
  getResponses(input?: Record<string, never>, options?: CallOptions): Promise<Response>;

  /** Creates a response. `POST /v1/responses` */
  postResponses(input: PostResponsesInput, options?: CallOptions): Promise<Response>;

  /** Sums up a conversation as an item. `POST /v1/responses/compact` */
  postResponsesCompact(input: PostResponsesCompactInput, options?: CallOptions): Promise<any>;

  /** How many tokens a request has, estimated. `POST /v1/responses/input_tokens` */
  postResponsesInputTokens(input: PostResponsesInputTokensInput, options?: CallOptions): Promise<any>;

  /** A response, or its events again. `GET /v1/responses/{id}` */
  getResponsesId(input: GetResponsesIdInput, options?: CallOptions): Promise<Response>;

  /** `{id}:pause` and `{id}:resume` of KsADK: 501. `POST /v1/responses/{id}` */
  postResponsesId(input: PostResponsesIdInput, options?: CallOptions): Promise<any>;

  /** Deletes a response; one in progress is cancelled first. `DELETE /v1/responses/{id}` */
  deleteResponsesId(input: DeleteResponsesIdInput, options?: CallOptions): Promise<any>;

  /** Cancels a response in progress. `POST /v1/responses/{id}/cancel` */
  postResponsesIdCancel(input: PostResponsesIdCancelInput, options?: CallOptions): Promise<any>;

  /** What the response was asked. `GET /v1/responses/{id}/input_items` */
  getResponsesIdInputItems(input: GetResponsesIdInputItemsInput, options?: CallOptions): Promise<any>;

  /** How clients authenticate: there is no Azure AD here. `GET /v1/rest/auth/metadata` */
  getRestAuthMetadata(input?: Record<string, never>, options?: CallOptions): Promise<any>;

  /** A `.show` command, or one for graph models. `POST /v1/rest/mgmt` */
  postRestMgmt(input: PostRestMgmtInput, options?: CallOptions): Promise<any>;

  /** A KQL query; the answer as version 1 has it. `POST /v1/rest/query` */
  postRestQuery(input: PostRestQueryInput, options?: CallOptions): Promise<any>;

  /** The settings in force and where each came from; secrets are `***`. `GET /v1/settings` */
  getSettings(input?: Record<string, never>, options?: CallOptions): Promise<GetSettingsAnswer>;

  /** Forgets old states of tables, and removes the files that only they have. `POST /v1/snapshots/expire` */
  postSnapshotsExpire(input: PostSnapshotsExpireInput, options?: CallOptions): Promise<PostSnapshotsExpireAnswer>;

  /** Tokens of the catalog, oldest first, without the tokens themselves. `GET /v1/tokens` */
  getTokens(input?: GetTokensInput, options?: CallOptions): Promise<GetTokensAnswer>;

  /** Creates a token; the answer is the only place where it is shown. `POST /v1/tokens` */
  postTokens(input: PostTokensInput, options?: CallOptions): Promise<PostTokensAnswer>;

  /** Revokes a token, at once. `DELETE /v1/tokens/{id}` */
  deleteTokensId(input: DeleteTokensIdInput, options?: CallOptions): Promise<DeleteTokensIdAnswer>;

  /** A KQL query; the answer as frames of version 2. `POST /v2/rest/query` */
  postV2RestQuery(input: PostV2RestQueryInput, options?: CallOptions): Promise<any>;

  /** The server's version. `GET /version` */
  getVersion(input?: Record<string, never>, options?: CallOptions): Promise<any>;
}

export interface PostA2aInput {
  /** 1.0, or 0.3 where it is absent */
  "A2A-Version"?: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** 2.0 */
    jsonrpc: string;
    /** a text or a number, which the answer repeats */
    id: any;
    /** `SendMessage`, `SendStreamingMessage`, `GetTask`, `CancelTask`, `SubscribeToTask` */
    method: string;
    /** of the method */
    params?: Record<string, any>;
  };
}

export interface PostAgUiInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the client's name of the conversation */
    threadId: string;
    /** the client's name of the run */
    runId: string;
    /** the conversation so far */
    messages: any[];
    /** functions that the client executes */
    tools?: any[];
    /** what the application says of itself */
    context?: any[];
    /** the application's state, which the model reads */
    state?: Record<string, any>;
    /** decisions on calls that waited for a person */
    resume?: any[];
    /** `{thinking: true}` shows the thinking */
    forwardedProps?: Record<string, any>;
  };
}

export interface GetAgentengineApiAttachmentContentInput {
  /** the file's id */
  FileUri: string;
}

export interface PostAgentengineApiCancelRunInput {
  body: {
    /** the run */
    InvocationId?: string;
    /** the session */
    SessionId?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiCreateSessionInput {
  body: {
    /** the session */
    SessionId?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** it has no effect: sessions are kept as `agent.retention` says */
    ExpiresHours?: number;
  };
}

export interface PostAgentengineApiDeleteResponseFeedbackInput {
  body: {
    /** the session */
    SessionId: string;
    /** the response */
    ResponseId: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiDeleteSessionInput {
  body: {
    /** the session */
    SessionId?: string;
    /** the session, as KsADK's own client calls it */
    Id?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiGetAgentUiBootstrapInput {
  body: {
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the session */
    SessionId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiGetResponseFeedbackInput {
  body: {
    /** the session */
    SessionId: string;
    /** the response */
    ResponseId: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiGetSessionInput {
  body: {
    /** the session */
    SessionId?: string;
    /** the session, as KsADK's own client calls it */
    Id?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
  };
}

export interface PostAgentengineApiListAgentModelsInput {
  body: {
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** it has no effect: there is one agent */
    Name?: string;
  };
}

export interface PostAgentengineApiListSessionEventsInput {
  body: {
    /** the session */
    SessionId?: string;
    /** the session, as KsADK's own client calls it */
    Id?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** only later events */
    AfterSeqId?: number;
    /** only earlier events */
    BeforeSeqId?: number;
    /** events at most */
    Limit?: number;
    /** only events of these types */
    EventTypes?: any[];
    /** 501, unless it is empty */
    CheckpointIds?: any[];
    /** how many events to skip */
    Offset?: number;
  };
}

export interface PostAgentengineApiListSessionMessagesInput {
  body: {
    /** the session */
    SessionId?: string;
    /** the session, as KsADK's own client calls it */
    Id?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** only later events */
    AfterSeqId?: number;
    /** only earlier events */
    BeforeSeqId?: number;
    /** events at most */
    Limit?: number;
    /** only events of these types */
    EventTypes?: any[];
    /** 501, unless it is empty */
    CheckpointIds?: any[];
    /** the thinking that led to an answer */
    IncludeReasoning?: boolean;
    /** the calls that led to an answer, with their results */
    IncludeToolEvents?: boolean;
    /** it has no effect: messages are text */
    IncludeAttachments?: boolean;
    /** it has no effect: there is one */
    CursorSource?: string;
  };
}

export interface PostAgentengineApiListSessionsInput {
  body: {
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** the page, from 1 on */
    Page?: number;
    /** sessions of a page; 20 unless said otherwise */
    PageSize?: number;
  };
}

export interface PostAgentengineApiRunAgentInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** `querent`, or what its client calls it */
    AgentId: string;
    /** the conversation so far */
    Messages?: any[];
    /** the same as items of the Responses API */
    ResponsesInput?: string | any[];
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** the session */
    SessionId?: string;
    /** the run */
    InvocationId?: string;
    /** the response that this one continues */
    PreviousResponseId?: string;
    /** what the answer is */
    ApiFormat?: "responses" | "chat_completions";
    /** whether to answer with server-sent events */
    Stream?: boolean;
    /** whether to answer at once */
    Background?: boolean;
    /** a configured model's name */
    Model?: string;
    /** `{"thinking": true}` shows thinking */
    ModelOptions?: Record<string, any>;
    /** kept with the run */
    Metadata?: Record<string, any>;
    /** functions that the client executes */
    Tools?: any[];
    /** files beside the message */
    attachments?: any[];
  };
}

export interface GetAgentengineApiSubscribeRunEventsInput {
  /** the session */
  SessionId?: string;
  /** the run */
  InvocationId?: string;
  /** only later events */
  AfterSeqId?: number;
  /** `querent`, or what its client calls it */
  AgentId?: string;
  /** the application's user; `user` unless said otherwise */
  UserId?: string;
}

export interface PostAgentengineApiUploadFileInput {
  body: BodyInit;
  contentType: "multipart/form-data";
}

export interface PostAgentengineApiUpsertResponseFeedbackInput {
  body: {
    /** the session */
    SessionId: string;
    /** the response */
    ResponseId: string;
    /** right or wrong */
    Rating: "up" | "down";
    /** in words */
    Comment?: string;
    /** `querent`, or what its client calls it */
    AgentId?: string;
    /** the application's user; `user` unless said otherwise */
    UserId?: string;
    /** repeated */
    EventId?: string;
    /** repeated */
    TraceId?: string;
    /** repeated */
    RootSpanId?: string;
  };
}

export interface PostApiChatInput {
  /** goes on with a stream that broke off after this event */
  "Last-Event-ID"?: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the question; may be missing where a paused conversation goes on */
    ask?: string;
    /** the conversation as the last answer gave it; first the system's message */
    conversation_history?: any[];
    /** a configured model's name */
    model?: string;
    /** whether to answer with server-sent events */
    stream?: boolean;
    /** a JSON schema for `analysis` */
    response_format?: Record<string, any>;
    /** data URIs, or `{url, detail, format}` */
    images?: any[];
    /** whether a person can be asked about a call */
    enable_tool_approval?: boolean;
    /** `{tool_call_id, approved, feedback}` */
    tool_decisions?: any[];
    /** `{name, description, parameters, mode, noop_response}` */
    frontend_tools?: any[];
    /** `{tool_call_id, tool_name, result}` */
    frontend_tool_results?: any[];
    /** added to the system's message */
    additional_system_prompt?: string;
    /** sections of the prompt, on or off */
    behavior_controls?: Record<string, any>;
  };
}

export interface PostApiChecksExecuteInput {
  body: any;
}

export interface GetApiInfoInput {
  /** how much */
  detail?: "full";
}

export interface PostApiOauthCallbackInput {
  body: any;
}

export interface PostApiEmbedGenerateSessionInput {
  body: {
    /** the application's user */
    externalId?: string;
    /** or a user of this server */
    internalId?: string;
    /** the user's address */
    email?: string;
    /** `{name, value}` pairs */
    userAttributes?: any[];
    /** names of groups */
    groups?: any[];
    /** whatever else */
    securityContext?: Record<string, any>;
    /** whether the user goes after a while; true unless said otherwise */
    isEphemeral?: boolean;
    /** after how long; a week unless said otherwise */
    ephemeralTtlSeconds?: number;
  };
}

export interface PostApiEmbedSessionTokenInput {
  body: {
    /** the session */
    sessionId: string;
  };
}

export interface PostApiPublicAccountAgentsAgentChatAbortInput {
  /** as a listing or an earlier answer names it */
  account: string;
  /** as a listing or an earlier answer names it */
  agent: string;
  body: {
    /** the thread */
    chatId: string;
    /** who asks: `{externalId}` or `{internalId}`; not with a user's token */
    sessionSettings?: Record<string, any>;
  };
}

export interface PostApiPublicAccountAgentsAgentChatStreamChatStateInput {
  /** as a listing or an earlier answer names it */
  account: string;
  /** as a listing or an earlier answer names it */
  agent: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the message; without one the thread's state is read */
    input?: string;
    /** the thread */
    chatId?: string;
    /** the client's id of the message, as 1717500000000-message */
    messageId?: string;
    /** who asks: `{externalId}` or `{internalId}`; not with a user's token */
    sessionSettings?: Record<string, any>;
    /** a branch of the data; there is only `main` */
    activeBranchName?: string;
    /** whether that branch is the default one, whatever its name */
    isDefaultBranch?: boolean;
    /** whether thinking is shown */
    isDevMode?: boolean;
  };
}

export interface GetAppsAppEvalResultsInput {
  /** as a listing or an earlier answer names it */
  app: string;
}

export interface GetAppsAppEvalSetsInput {
  /** as a listing or an earlier answer names it */
  app: string;
}

export interface GetAppsAppUsersUserSessionsInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
}

export interface PostAppsAppUsersUserSessionsInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  body: {
    /** the session's first state */
    state?: Record<string, any>;
  };
}

export interface GetAppsAppUsersUserSessionsSessionInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  /** as a listing or an earlier answer names it */
  session: string;
}

export interface PostAppsAppUsersUserSessionsSessionInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  /** as a listing or an earlier answer names it */
  session: string;
  body: {
    /** the session's first state */
    state?: Record<string, any>;
  };
}

export interface PatchAppsAppUsersUserSessionsSessionInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  /** as a listing or an earlier answer names it */
  session: string;
  body: {
    /** what is merged */
    stateDelta?: Record<string, any>;
  };
}

export interface DeleteAppsAppUsersUserSessionsSessionInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  /** as a listing or an earlier answer names it */
  session: string;
}

export interface GetAppsAppUsersUserSessionsSessionArtifactsInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  user: string;
  /** as a listing or an earlier answer names it */
  session: string;
}

export interface GetConsoleFileInput {
  /** as a listing or an earlier answer names it */
  file: string;
}

export interface GetDebugTraceSessionSessionInput {
  /** as a listing or an earlier answer names it */
  session: string;
}

export interface GetDevAppsAppDebugTraceSessionSessionInput {
  /** as a listing or an earlier answer names it */
  app: string;
  /** as a listing or an earlier answer names it */
  session: string;
}

export interface GetDevAppsAppEvalResultsInput {
  /** as a listing or an earlier answer names it */
  app: string;
}

export interface GetDevAppsAppEvalSetsInput {
  /** as a listing or an earlier answer names it */
  app: string;
}

export interface GetHealthAnswer {
  /** `ok` */
  status: string;
  /** the server's version */
  version: string;
  /** `querent` */
  framework: string;
  /** `querent` */
  agent: string;
}

export interface GetListAppsInput {
  /** whether to say more than the name */
  detailed?: boolean;
  /** of ADK's web interface; it has no effect */
  relative_path?: string;
}

export interface PostMcpInput {
  /** the session, as `initialize` was answered */
  "Mcp-Session-Id"?: string;
  /** where bare names resolve; `*` is no database in particular */
  "X-Database"?: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** JSON-RPC's version */
    jsonrpc: "2.0";
    /** a text or a number, which the answer repeats; a notification has none */
    id?: any;
    /** what to do */
    method?: string;
    /** its parameters */
    params?: Record<string, any>;
  };
}

export interface DeleteMcpInput {
  /** the session, as `initialize` was answered */
  "Mcp-Session-Id"?: string;
}

export interface PostRunInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** `querent`, or what its client calls it */
    appName: string;
    /** the application's user */
    userId: string;
    /** the session; made when it is not there */
    sessionId?: string;
    /** `{role, parts}` */
    newMessage: Record<string, any>;
    /** whether pieces of text are sent too */
    streaming?: boolean;
    /** merged into the session's state */
    stateDelta?: Record<string, any>;
    /** the run */
    invocationId?: string;
    /** a configured model's name */
    model?: string;
    /** `{"thinking": true}` shows thinking */
    modelOptions?: Record<string, any>;
    /** functions that the client executes */
    tools?: any[];
  };
}

export interface PostRunSseInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** `querent`, or what its client calls it */
    appName: string;
    /** the application's user */
    userId: string;
    /** the session; made when it is not there */
    sessionId?: string;
    /** `{role, parts}` */
    newMessage: Record<string, any>;
    /** whether pieces of text are sent too */
    streaming?: boolean;
    /** merged into the session's state */
    stateDelta?: Record<string, any>;
    /** the run */
    invocationId?: string;
    /** a configured model's name */
    model?: string;
    /** `{"thinking": true}` shows thinking */
    modelOptions?: Record<string, any>;
    /** functions that the client executes */
    tools?: any[];
  };
}

export interface PostAgentAskInput {
  /** goes on with a stream that broke off after this event */
  "Last-Event-ID"?: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the question */
    question: string;
    /** where bare names resolve */
    database?: string;
    /** whether the model's thinking is sent too */
    include_thinking?: boolean;
    /** the conversation that the question belongs to */
    session_id?: string;
    /** whether the run may pause for a person's approval of a call that writes */
    approvals?: boolean;
  };
}

export interface GetAgentRunsInput {
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetAgentRunsAnswer {
  /** entries of the page */
  runs: {
    /** the run */
    run_id: string;
    /** what was asked */
    question: string;
    /** the model that answered */
    model_id: string;
    /** the protocol that it was asked over */
    protocol: string;
    /** how far it is */
    status: "running" | "success" | "error" | "budget_exceeded" | "cancelled" | "paused";
    /** when it began */
    started_at: string;
    /** when it ended */
    finished_at: string | null;
    /** what it used, by name: tokens, calls of tools */
    usage: Record<string, any>;
  }[];
  /** the next page's `page_token`; null on the last page */
  next_page_token: string | null;
}

export interface GetAgentRunsRunIdInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
}

export interface GetAgentRunsRunIdAnswer {
  /** the run */
  run_id: string;
  /** what was asked */
  question: string;
  /** the model that answered */
  model_id: string;
  /** the protocol that it was asked over */
  protocol: string;
  /** how far it is */
  status: "running" | "success" | "error" | "budget_exceeded" | "cancelled" | "paused";
  /** when it began */
  started_at: string;
  /** when it ended */
  finished_at: string | null;
  /** what it used, by name: tokens, calls of tools */
  usage: Record<string, any>;
  /** its events, as `ask` streamed them */
  trace: {
    /** the event's name */
    event: string;
    /** what it says */
    data: Record<string, any>;
  }[];
}

export interface GetAgentRunsRunIdApprovalsInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
}

export interface GetAgentRunsRunIdApprovalsAnswer {
  /** the run */
  run_id: string;
  /** the calls */
  approvals: {
    /** by which it is decided on */
    approval_id: string;
    /** the tool that is called */
    tool: string;
    /** what it is called with */
    args: any;
    /** what was decided */
    state: "waiting" | "approved" | "denied" | "abandoned";
    /** when that was */
    decided_at?: string;
  }[];
}

export interface PostAgentRunsRunIdApprovalsInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
  body: {
    /** the decision on all calls */
    approve?: boolean;
    /** why, which the model reads */
    reason?: string;
    /** instead, one for each call */
    decisions?: {
      /** the call */
      approval_id: string;
      /** the decision */
      approve: boolean;
      /** why, which the model reads */
      reason?: string;
    }[];
  };
}

export interface PostAgentRunsRunIdCancelInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
}

export interface PostAgentRunsRunIdCancelAnswer {
  /** the run */
  run_id: string;
  /** what was asked */
  question: string;
  /** the model that answered */
  model_id: string;
  /** the protocol that it was asked over */
  protocol: string;
  /** how far it is */
  status: "running" | "success" | "error" | "budget_exceeded" | "cancelled" | "paused";
  /** when it began */
  started_at: string;
  /** when it ended */
  finished_at: string | null;
  /** what it used, by name: tokens, calls of tools */
  usage: Record<string, any>;
  /** its events, as `ask` streamed them */
  trace: {
    /** the event's name */
    event: string;
    /** what it says */
    data: Record<string, any>;
  }[];
}

export interface GetAgentRunsRunIdEventsInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
  /** begins behind this event */
  "Last-Event-ID"?: string;
}

export interface GetAgentRunsRunIdFeedbackInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
}

export interface GetAgentRunsRunIdFeedbackAnswer {
  /** oldest first */
  feedback: {
    /** the run */
    run_id: string;
    /** who says it */
    subject: string;
    /** what is said */
    verdict: "right" | "wrong" | "corrected";
    /** in words */
    comment: string | null;
    /** the SQL that answers the question */
    corrected_sql: string | null;
    /** the answer as it should be */
    corrected_text: string | null;
    /** when it was said first */
    created_at: string;
    /** when it was said last */
    updated_at: string;
    /** the verified query that it proposes */
    proposal: {
      /** by which it is decided */
      id: number;
      /** the run */
      run_id: string;
      /** who proposes it */
      subject: string;
      /** whether it was decided */
      state: "waiting" | "accepted" | "rejected";
      /** where bare names of `sql` resolve */
      database: string;
      /** the question */
      question: string;
      /** what answers it */
      sql: string;
      /** the tables that it reads */
      tables: {
        /** its database */
        database: string;
        /** its name */
        table: string;
      }[];
      /** when it was proposed */
      created_at: string;
      /** when it was decided */
      decided_at: string | null;
      /** who decided */
      decided_by: string | null;
    } | null;
  }[];
}

export interface PostAgentRunsRunIdFeedbackInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
  body: {
    /** what is said */
    verdict: "right" | "wrong" | "corrected";
    /** in words */
    comment?: string;
    /** corrected: the SQL that answers the question */
    sql?: string;
    /** corrected: the answer as it should be */
    text?: string;
    /** the question, where that of the run continues a conversation */
    question?: string;
    /** where bare names of `sql` resolve */
    database?: string;
  };
}

export interface PostAgentRunsRunIdFeedbackAnswer {
  /** the run */
  run_id: string;
  /** who says it */
  subject: string;
  /** what is said */
  verdict: "right" | "wrong" | "corrected";
  /** in words */
  comment: string | null;
  /** the SQL that answers the question */
  corrected_sql: string | null;
  /** the answer as it should be */
  corrected_text: string | null;
  /** when it was said first */
  created_at: string;
  /** when it was said last */
  updated_at: string;
  /** the verified query that it proposes */
  proposal: {
    /** by which it is decided */
    id: number;
    /** the run */
    run_id: string;
    /** who proposes it */
    subject: string;
    /** whether it was decided */
    state: "waiting" | "accepted" | "rejected";
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** when it was proposed */
    created_at: string;
    /** when it was decided */
    decided_at: string | null;
    /** who decided */
    decided_by: string | null;
  } | null;
  /** why nothing is proposed, where nothing is */
  not_proposed?: string;
}

export interface DeleteAgentRunsRunIdFeedbackInput {
  /** as a listing or an earlier answer names it */
  run_id: string;
}

export interface DeleteAgentRunsRunIdFeedbackAnswer {
  /** whether you had said something */
  dropped: boolean;
}

export interface GetAgentSessionsInput {
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetAgentSessionsAnswer {
  /** entries of the page */
  sessions: {
    /** its id */
    session_id: string;
    /** the first words that were asked */
    title: string;
    /** when it began */
    created_at: string;
    /** when it was used last */
    last_active: string;
    /** its runs */
    turn_count: number;
  }[];
  /** the next page's `page_token`; null on the last page */
  next_page_token: string | null;
}

export interface GetAgentSessionsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetAgentSessionsIdAnswer {
  /** its id */
  session_id: string;
  /** the first words that were asked */
  title: string;
  /** when it began */
  created_at: string;
  /** when it was used last */
  last_active: string;
  /** its runs */
  turn_count: number;
}

export interface DeleteAgentSessionsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteAgentSessionsIdAnswer {
  /** true */
  deleted: boolean;
  /** its id */
  session_id: string;
}

export interface GetAgentSessionsIdTurnsInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetAgentSessionsIdTurnsAnswer {
  /** oldest first */
  turns: {
    /** its place, from 0 */
    turn_index: number;
    /** who says it */
    role: "user" | "assistant";
    /** what is said */
    content: string;
    /** the run that it is of; null of what a client added */
    run_id: string | null;
    /** when it was said */
    created_at: string;
  }[];
}

export interface GetAuditInput {
  /** only records after the one of this number */
  after?: number;
  /** records at most */
  limit?: number;
}

export interface GetAuditAnswer {
  /** oldest first */
  records: {
    /** its number */
    seq: number;
    /** when the statement began */
    at: string;
    /** who sent it */
    subject: string;
    /** the role */
    role: string;
    /** the door that it came through, such as `http` */
    door: string;
    /** the beginning of its text, without secrets */
    statement: string;
    /** the tables that it reads */
    tables: string[];
    /** the columns that it reads of them */
    columns: string[];
    /** the table or database that it writes */
    written: string | null;
    /** the row policies and masks that held */
    policies: string[];
    /** what came of it */
    outcome: "done" | "refused" | "failed";
    /** the code of its error */
    error: string | null;
    /** rows that were delivered */
    rows: number;
    /** their bytes */
    bytes: number;
    /** how long it took */
    elapsed_ms: number;
    /** over the record and the hash before it */
    hash: string;
  }[];
}

export interface GetAuditVerifyAnswer {
  /** records that were read */
  records: number;
  /** the number and the hash of the last one */
  head: any[] | null;
  /** what is wrong, if anything */
  fault: string | null;
}

export interface PostBackupInput {
  body: {
    /** an absolute path; empty or not there */
    folder: string;
  };
}

export interface PostBackupAnswer {
  /** when its moment was */
  made_at: string;
  /** the version that made it */
  querent: string;
  /** the files of tables */
  files: number;
  /** their bytes */
  bytes: number;
  /** where the files of tables lie, where they are not in the backup */
  data_path?: string;
}

export interface GetCallerAnswer {
  /** whom the token stands for; `local` on a server without tokens */
  subject: string;
  /** what the caller may do */
  role: "read" | "write" | "admin";
  /** the only databases that it sees; null for all */
  databases: string[] | null;
  /** roles that policies name */
  roles: string[];
  /** groups that policies name */
  groups: string[];
}

export interface PatchCatalogDatabasesDatabaseInput {
  /** as a listing or an earlier answer names it */
  database: string;
  body: {
    /** the comment; null takes it away */
    comment: string | null;
  };
}

export interface PatchCatalogDatabasesDatabaseAnswer {
  /** the database */
  name: string;
  /** its comment */
  comment: string | null;
}

export interface GetCatalogMetricsInput {
  /** only what is in this database */
  database?: string;
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetCatalogMetricsAnswer {
  /** entries of the page */
  metrics: {
    /** by which it is dropped */
    id: number;
    /** its database */
    database: string;
    /** its name */
    name: string;
    /** what the number means */
    description: string | null;
    /** the table that it is computed over */
    table: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    };
    /** an aggregate in SQL */
    expression: string;
    /** rows that count, in SQL */
    filter: string | null;
    /** who stored it */
    subject: string;
    /** when that was */
    created_at: string;
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface PostCatalogMetricsInput {
  body: {
    /** the metric's name */
    name: string;
    /** `{database, table}` */
    table: Record<string, any>;
    /** an aggregate in SQL */
    expression: string;
    /** rows that count, in SQL */
    filter?: string;
    /** what the number means */
    description?: string;
  };
}

export interface PostCatalogMetricsAnswer {
  /** by which it is dropped */
  id: number;
  /** its database */
  database: string;
  /** its name */
  name: string;
  /** what the number means */
  description: string | null;
  /** the table that it is computed over */
  table: {
    /** its database */
    database: string;
    /** its name */
    table: string;
  };
  /** an aggregate in SQL */
  expression: string;
  /** rows that count, in SQL */
  filter: string | null;
  /** who stored it */
  subject: string;
  /** when that was */
  created_at: string;
}

export interface DeleteCatalogMetricsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteCatalogMetricsIdAnswer {
  /** true */
  dropped: boolean;
}

export interface GetCatalogQueryProposalsInput {
  /** only such */
  state?: "waiting" | "accepted" | "rejected";
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetCatalogQueryProposalsAnswer {
  /** entries of the page */
  query_proposals: {
    /** by which it is decided */
    id: number;
    /** the run */
    run_id: string;
    /** who proposes it */
    subject: string;
    /** whether it was decided */
    state: "waiting" | "accepted" | "rejected";
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** when it was proposed */
    created_at: string;
    /** when it was decided */
    decided_at: string | null;
    /** who decided */
    decided_by: string | null;
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface PostCatalogQueryProposalsIdAcceptInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostCatalogQueryProposalsIdAcceptAnswer {
  /** the proposal as it is now */
  proposal: {
    /** by which it is decided */
    id: number;
    /** the run */
    run_id: string;
    /** who proposes it */
    subject: string;
    /** whether it was decided */
    state: "waiting" | "accepted" | "rejected";
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** when it was proposed */
    created_at: string;
    /** when it was decided */
    decided_at: string | null;
    /** who decided */
    decided_by: string | null;
  };
  /** what it became */
  verified_query: {
    /** by which it is dropped */
    id: number;
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** who stored it */
    subject: string;
    /** when that was */
    created_at: string;
  };
}

export interface PostCatalogQueryProposalsIdRejectInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostCatalogQueryProposalsIdRejectAnswer {
  /** the proposal as it is now */
  proposal: {
    /** by which it is decided */
    id: number;
    /** the run */
    run_id: string;
    /** who proposes it */
    subject: string;
    /** whether it was decided */
    state: "waiting" | "accepted" | "rejected";
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** when it was proposed */
    created_at: string;
    /** when it was decided */
    decided_at: string | null;
    /** who decided */
    decided_by: string | null;
  };
}

export interface GetCatalogRelationshipsInput {
  /** the table's database; only with `table` */
  database?: string;
  /** the table; only with `database` */
  table?: string;
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetCatalogRelationshipsAnswer {
  /** entries of the page */
  relationships: {
    /** by which it is dropped */
    id: number;
    /** the table that refers */
    from: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    };
    /** its columns */
    from_columns: string[];
    /** the table referred to */
    to: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    };
    /** its columns, in the same order */
    to_columns: string[];
    /** how it came to be */
    origin: "foreign_key" | "declared";
    /** 1, since it is declared */
    confidence: number;
    /** the evidence for it */
    why: string;
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface PostCatalogRelationshipsInput {
  body: {
    /** `{database, table}` */
    from: Record<string, any>;
    /** its columns */
    from_columns: any[];
    /** `{database, table}` */
    to: Record<string, any>;
    /** its columns, in the same order */
    to_columns: any[];
  };
}

export interface PostCatalogRelationshipsAnswer {
  /** by which it is dropped */
  id: number;
  /** the table that refers */
  from: {
    /** its database */
    database: string;
    /** its name */
    table: string;
  };
  /** its columns */
  from_columns: string[];
  /** the table referred to */
  to: {
    /** its database */
    database: string;
    /** its name */
    table: string;
  };
  /** its columns, in the same order */
  to_columns: string[];
  /** how it came to be */
  origin: "foreign_key" | "declared";
  /** 1, since it is declared */
  confidence: number;
  /** the evidence for it */
  why: string;
}

export interface DeleteCatalogRelationshipsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteCatalogRelationshipsIdAnswer {
  /** true */
  dropped: boolean;
}

export interface GetCatalogSchemaInput {
  /** only what is in this database */
  database?: string;
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetCatalogSchemaAnswer {
  /** by name */
  databases: {
    /** its name */
    name: string;
    /** its tables on this page; a database may go on on the next */
    tables: {
      /** its name */
      name: string;
      /** what kind of table it is */
      kind: "managed" | "external" | "view";
      /** what it is, where somebody said so */
      comment?: string;
      /** in the table's order */
      columns: {
        /** its name */
        name: string;
        /** its Arrow type */
        data_type: string;
        /** whether it may hold null */
        nullable: boolean;
        /** what it is, where somebody said so */
        comment?: string;
      }[];
    }[];
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface GetCatalogSearchInput {
  /** what to look for */
  q: string;
  /** only what is in this database */
  database?: string;
  /** tables at most */
  limit?: number;
}

export interface GetCatalogSearchAnswer {
  /** tables, the best first */
  hits: {
    /** its database */
    database: string;
    /** its name */
    table: string;
    /** what kind of table it is */
    kind: "managed" | "external" | "view";
    /** what it is, where somebody said so */
    comment: string | null;
    /** its rows, where they are known without reading */
    row_count: number | null;
    /** the higher, the better it fits */
    score: number;
    /** the searches that found it */
    found_by: ("name" | "bm25" | "dense" | "column" | "value" | "verified_query" | "metric" | "relationship")[];
    /** details in words */
    why: string[];
  }[];
  /** why names and texts alone were searched, where that is so */
  missing_meaning?: {
    /** what is wrong */
    reason: string;
    /** what to do about it */
    hint: string;
    /** whether the settings leave meaning out */
    is_chosen: boolean;
  };
}

export interface GetCatalogTablesTableInput {
  /** as a listing or an earlier answer names it */
  table: string;
  /** the table's database; `default` unless given */
  database?: string;
}

export interface GetCatalogTablesTableAnswer {
  /** its database */
  database: string;
  /** its name */
  name: string;
  /** what kind of table it is */
  kind: "managed" | "external" | "view";
  /** what it is, where somebody said so */
  comment?: string;
  /** its rows, where they are known without reading */
  row_count?: number;
  /** in the table's order */
  columns: {
    /** its name */
    name: string;
    /** its Arrow type */
    data_type: string;
    /** whether it may hold null */
    nullable: boolean;
    /** what it is, where somebody said so */
    comment?: string;
  }[];
}

export interface PatchCatalogTablesTableInput {
  /** as a listing or an earlier answer names it */
  table: string;
  /** the table's database; `default` unless given */
  database?: string;
  body: {
    /** the table's comment; null takes it away */
    comment?: string | null;
    /** comments by the names of columns; null takes one away */
    columns?: Record<string, any>;
  };
}

export interface PatchCatalogTablesTableAnswer {
  /** its database */
  database: string;
  /** its name */
  name: string;
  /** what kind of table it is */
  kind: "managed" | "external" | "view";
  /** what it is, where somebody said so */
  comment?: string;
  /** its rows, where they are known without reading */
  row_count?: number;
  /** in the table's order */
  columns: {
    /** its name */
    name: string;
    /** its Arrow type */
    data_type: string;
    /** whether it may hold null */
    nullable: boolean;
    /** what it is, where somebody said so */
    comment?: string;
  }[];
}

export interface GetCatalogTablesTableProfileInput {
  /** as a listing or an earlier answer names it */
  table: string;
  /** the table's database; `default` unless given */
  database?: string;
}

export interface GetCatalogTablesTableProfileAnswer {
  /** the table's database */
  database: string;
  /** the table */
  table: string;
  /** rows that were counted */
  rows: number;
  /** whether that is all rows, and every column is described */
  is_complete: boolean;
  /** columns beyond the first 100 */
  left_out_columns: number;
  /** in the table's order */
  columns: {
    /** its name */
    name: string;
    /** its type in SQL */
    type: string;
    /** rows without a value */
    nulls: number;
    /** distinct values, estimated */
    distinct: number | null;
    /** the least value */
    min: string | null;
    /** the greatest value */
    max: string | null;
    /** the mean of numbers */
    mean: number | null;
    /** the most frequent values, if values repeat */
    top_values: {
      /** the value */
      value: string;
      /** rows that have it */
      rows: number;
    }[] | null;
    /** rows by ranges of numbers, dates and instants */
    histogram: {
      /** the range's least value */
      from: string;
      /** its end */
      to: string;
      /** rows with a value in it */
      rows: number;
    }[] | null;
  }[];
}

export interface GetCatalogVerifiedQueriesInput {
  /** only what is in this database */
  database?: string;
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetCatalogVerifiedQueriesAnswer {
  /** entries of the page */
  verified_queries: {
    /** by which it is dropped */
    id: number;
    /** where bare names of `sql` resolve */
    database: string;
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** the tables that it reads */
    tables: {
      /** its database */
      database: string;
      /** its name */
      table: string;
    }[];
    /** who stored it */
    subject: string;
    /** when that was */
    created_at: string;
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface PostCatalogVerifiedQueriesInput {
  body: {
    /** the question */
    question: string;
    /** what answers it */
    sql: string;
    /** where bare names resolve */
    database?: string;
  };
}

export interface PostCatalogVerifiedQueriesAnswer {
  /** by which it is dropped */
  id: number;
  /** where bare names of `sql` resolve */
  database: string;
  /** the question */
  question: string;
  /** what answers it */
  sql: string;
  /** the tables that it reads */
  tables: {
    /** its database */
    database: string;
    /** its name */
    table: string;
  }[];
  /** who stored it */
  subject: string;
  /** when that was */
  created_at: string;
}

export interface DeleteCatalogVerifiedQueriesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteCatalogVerifiedQueriesIdAnswer {
  /** true */
  dropped: boolean;
}

export interface GetChatCompletionsInput {
  /** the last item of the page before */
  after?: string;
  /** items of a page */
  limit?: number;
  /** asc, oldest first, unless asked otherwise */
  order?: "asc" | "desc";
  /** of this model */
  model?: string;
  /** `metadata[name]=value`: with this pair */
  metadata?: Record<string, any>;
}

export interface PostChatCompletionsInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the conversation so far */
    messages: any[];
    /** `querent`, or a configured model's name */
    model?: string;
    /** whether to answer with server-sent events */
    stream?: boolean;
    /** `{include_usage}` */
    stream_options?: Record<string, any>;
    /** keeps the conversation under this id */
    session_id?: string;
    /** whether it can be retrieved; false unless said otherwise */
    store?: boolean;
    /** functions that the client executes */
    tools?: any[];
    /** whether a tool must be called */
    tool_choice?: string | Record<string, any>;
    /** false: one call in a turn */
    parallel_tool_calls?: boolean;
    /** the answer's form, a JSON schema */
    response_format?: Record<string, any>;
    /** tokens of one turn */
    max_completion_tokens?: number;
    /** the same */
    max_tokens?: number;
    /** to the model, 0 to 2 */
    temperature?: number;
    /** to the model, 0 to 1 */
    top_p?: number;
    /** to the model, where its provider takes one; a whole number */
    seed?: number;
    /** up to four texts that end the answer */
    stop?: string | any[];
    /** to models that take one, -2 to 2 */
    presence_penalty?: number;
    /** to models that take one, -2 to 2 */
    frequency_penalty?: number;
    /** other than `none`: shows the thinking */
    reasoning_effort?: string;
    /** up to 16 pairs of texts */
    metadata?: Record<string, any>;
    /** of KsADK's clients: `{thinking}` */
    model_options?: Record<string, any>;
    /** of KsADK's clients: files of the newest message */
    attachments?: any[];
    /** the same */
    current_attachments?: any[];
    /** false: `attachments` are of earlier messages */
    has_current_files?: boolean;
  };
}

export interface GetChatCompletionsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostChatCompletionsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
  body: {
    /** up to 16 pairs of texts */
    metadata: Record<string, any>;
  };
}

export interface DeleteChatCompletionsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetChatCompletionsIdMessagesInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** the last item of the page before */
  after?: string;
  /** items of a page */
  limit?: number;
  /** desc, newest first, unless asked otherwise */
  order?: "asc" | "desc";
}

export interface PostCheckInput {
  /** removes files that no table has */
  remove_orphans?: boolean;
  /** how long such a file must not have changed */
  grace_seconds?: number;
  /** reads the files of tables to see whether they are as written */
  contents?: boolean;
}

export interface PostCheckAnswer {
  /** what is wrong, at most a thousand things */
  faults: string[];
  /** files that were looked at */
  files: number;
  /** their bytes */
  bytes: number;
  /** files that were read, where their contents were asked for */
  files_read?: number;
  /** objects that the schema index does not hold yet */
  pending_objects: number;
  /** files that no table has */
  orphans: {
    /** where it is */
    path: string;
    /** its bytes */
    bytes: number;
    /** for how long it has not changed */
    age_seconds: number;
  }[];
  /** of those, how many were removed */
  removed: number;
}

export interface PostCompleteInput {
  body: {
    /** the statement so far */
    text: string;
    /** in UTF-16 code units; the end of the text unless given */
    position?: number;
    /** `sql` unless given */
    language?: "sql" | "kql" | "either";
    /** where bare names resolve */
    database?: string;
    /** suggestions at most; 50 unless given, never more than 200 */
    limit?: number;
  };
}

export interface PostCompleteAnswer {
  /** where what is replaced begins, in UTF-16 code units */
  start: number;
  /** the likeliest first */
  suggestions: {
    /** the text, in quotes where it must be */
    text: string;
    /** what it is */
    kind: "database" | "table" | "column" | "function" | "keyword";
    /** a column's type, or what a name is of */
    detail?: string;
  }[];
  /** whether there were more */
  truncated: boolean;
}

export interface PostCompletionsInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** the question */
    prompt: string | any[];
    /** `querent`, or a configured model's name */
    model?: string;
    /** whether to answer with server-sent events */
    stream?: boolean;
    /** `{include_usage}` */
    stream_options?: Record<string, any>;
    /** tokens of one turn */
    max_tokens?: number;
    /** to the model, 0 to 2 */
    temperature?: number;
    /** to the model, 0 to 1 */
    top_p?: number;
    /** to the model, where its provider takes one; a whole number */
    seed?: number;
    /** up to four texts that end the answer */
    stop?: string | any[];
    /** to models that take one, -2 to 2 */
    presence_penalty?: number;
    /** to models that take one, -2 to 2 */
    frequency_penalty?: number;
  };
}

export interface PostConversationsInput {
  body: {
    /** up to 16 pairs of texts */
    metadata?: Record<string, any>;
    /** its first items */
    items?: any[];
  };
}

export interface GetConversationsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostConversationsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
  body: {
    /** up to 16 pairs of texts */
    metadata: Record<string, any>;
  };
}

export interface DeleteConversationsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetConversationsIdItemsInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** the last item of the page before */
  after?: string;
  /** items of a page */
  limit?: number;
  /** desc, newest first, unless asked otherwise */
  order?: "asc" | "desc";
  /** what OpenAI's routes may include; what there is, is always included */
  include?: any[];
}

export interface PostConversationsIdItemsInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** what OpenAI's routes may include; what there is, is always included */
  include?: any[];
  body: {
    /** the items */
    items: any[];
  };
}

export interface GetConversationsIdItemsItemInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** as a listing or an earlier answer names it */
  item: string;
  /** what OpenAI's routes may include; what there is, is always included */
  include?: any[];
}

export interface DeleteConversationsIdItemsItemInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** as a listing or an earlier answer names it */
  item: string;
}

export interface PostEmbeddingsInput {
  body: {
    /** a text, or texts */
    input: string | any[];
    /** any name; there is one embedder */
    model?: string;
    /** float unless asked otherwise */
    encoding_format?: "float" | "base64";
    /** the dimension that the model has */
    dimensions?: number;
  };
}

export interface GetFilesInput {
  /** the last item of the page before */
  after?: string;
  /** items of a page */
  limit?: number;
  /** desc, newest first, unless asked otherwise */
  order?: "asc" | "desc";
  /** of this purpose */
  purpose?: string;
}

export interface PostFilesInput {
  body: BodyInit;
  contentType: "multipart/form-data";
}

export interface GetFilesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteFilesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetFilesIdContentInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostImportInput {
  /** the table */
  table: string;
  /** what the file is, unless the ending of `filename`, or of the names in a form, says it */
  format?: "csv" | "ndjson" | "parquet" | "arrow" | "xlsx";
  /** the table's database */
  database?: string;
  /** what happens to a table that is there */
  if_exists?: "error" | "append" | "replace";
  /** what errors call the file in the body; its ending says format and compression */
  filename?: string;
  /** CSV, JSON, workbooks: types of columns: zip=VARCHAR,born=DATE; *=VARCHAR is for all others */
  types?: string;
  /** workbooks: the sheet, otherwise the first that holds something */
  sheet?: string;
  /** workbooks: its cells: A1:F10, B3:, B:F */
  range?: string;
  /** CSV, workbooks: whether the first record names the columns; this and the following are found in the file where they are not said */
  has_header?: string;
  /** CSV: between values */
  delimiter?: string;
  /** CSV: around values; empty: nothing */
  quote?: string;
  /** CSV: before a quote within a value; empty: quotes are doubled */
  escape?: string;
  /** CSV, JSON: latin-1, utf-16, windows-1252 and so on */
  encoding?: string;
  /** CSV, workbooks: lines, or rows, to skip at the beginning */
  skip?: string;
  /** CSV: what a comment begins with; empty: nothing */
  comment?: string;
  /** CSV, workbooks: the texts that stand for null, separated by commas; empty: only the empty field */
  null_value?: string;
  /** CSV: whether missing fields at the end of a line are null */
  null_padding?: string;
  /** CSV: false: fields in quotes are no nulls in columns of text and bytes */
  allow_quoted_nulls?: string;
  /** CSV: the format of dates, as in strftime */
  date_format?: string;
  /** CSV: the format of timestamps */
  timestamp_format?: string;
  /** CSV: what stands before the fractions of numbers: `.` or `,` */
  decimal_separator?: string;
  /** CSV: what stands between the thousands of numbers */
  thousands?: string;
  /** CSV, JSON, workbooks: whether lines that cannot be read are set aside in a table */
  ignore_errors?: string;
  /** the name of that table, instead of TABLE_rejects */
  rejects?: string;
  /** how the file is compressed */
  compression?: string;
  body: BodyInit;
  contentType: "application/octet-stream" | "multipart/form-data";
}

export interface PostImportAnswer {
  /** the table's database */
  database: string;
  /** the table */
  table: string;
  /** rows that were imported */
  rows: number;
  /** files that were read */
  files: number;
  /** whether the table is new */
  created: boolean;
  /** how text was read: header, delimiter, types and formats of columns, null */
  reading?: Record<string, any>;
  /** lines that were set aside */
  rejects?: {
    /** how many */
    lines: number;
    /** where they are, as DATABASE.TABLE */
    table: string;
  };
}

export interface PostImportTreeInput {
  body: {
    /** a URL of an object store, or a folder on the server's disk */
    source: string;
    /** the database of all tables, instead of one a folder */
    database?: string;
    /** whether to only report */
    dry_run?: boolean;
  };
}

export interface PostMessagesInput {
  /** it has no effect */
  beta?: boolean;
  /** a date, as in 2023-06-01 */
  "anthropic-version"?: string;
  /** betas, each NAME-DATE; they have no effect, since each field is honoured or refused by its name */
  "anthropic-beta"?: string;
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** a configured model's name; any other is the default */
    model: string;
    /** the conversation so far */
    messages: any[];
    /** tokens of one turn */
    max_tokens: number;
    /** what the model is told besides */
    system?: string | any[];
    /** whether to answer with server-sent events */
    stream?: boolean;
    /** functions that the client executes */
    tools?: any[];
    /** auto, any, none, or a tool */
    tool_choice?: Record<string, any>;
    /** `{type: enabled}` shows the thinking */
    thinking?: Record<string, any>;
    /** to the model, 0 to 1 */
    temperature?: number;
    /** to the model, 0 to 1 */
    top_p?: number;
    /** texts that end the answer */
    stop_sequences?: any[];
    /** `{format}`: the answer's form, a JSON schema */
    output_config?: Record<string, any>;
    /** the same, as clients sent it while it was a beta */
    output_format?: Record<string, any>;
  };
}

export interface PostMessagesCountTokensInput {
  /** it has no effect */
  beta?: boolean;
  /** a date, as in 2023-06-01 */
  "anthropic-version"?: string;
  /** betas, each NAME-DATE; they have no effect, since each field is honoured or refused by its name */
  "anthropic-beta"?: string;
  body: {
    /** a configured model's name; any other is the default */
    model: string;
    /** the conversation so far */
    messages: any[];
    /** what the model is told besides */
    system?: string | any[];
    /** functions that the client executes */
    tools?: any[];
    /** auto, any, none, or a tool */
    tool_choice?: Record<string, any>;
    /** `{type: enabled}` shows the thinking */
    thinking?: Record<string, any>;
    /** `{format}`: the answer's form, a JSON schema */
    output_config?: Record<string, any>;
    /** the same, as clients sent it while it was a beta */
    output_format?: Record<string, any>;
  };
}

export interface GetModelsInput {
  /** with `anthropic-version`: models of a page */
  limit?: number;
  /** with `anthropic-version`: the last model of the page before */
  after_id?: string;
  /** with `anthropic-version`: the first model of the page behind */
  before_id?: string;
  /** with `anthropic-version`: models of these stages */
  lifecycle?: ("active" | "deprecated" | "retired")[];
  /** of Anthropic's clients; it has no effect */
  beta?: boolean;
}

export interface GetModelsAnswer {
  /** `list` */
  object?: string;
  /** the models */
  data: {
    /** its name */
    id: string;
    /** `model` */
    object?: string;
    /** when the server started, in seconds since 1970 */
    created?: number;
    /** operator: a configured model */
    owned_by?: "querent" | "operator";
    /** the same */
    source?: string;
  }[];
  /** the model that answers unless another is named */
  current?: string;
}

export interface GetModelsIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** of Anthropic's clients; it has no effect */
  beta?: boolean;
}

export interface GetPolicyAnswer {
  /** the version of the policy that holds */
  version: number;
  /** what holds */
  policy: {
    /** whether databases that are not named are governed too */
    governs_all: boolean;
    /** the databases that are governed */
    governed: string[];
    /** what is granted to whom */
    grants: any[];
    /** which rows of a table are there for whom */
    row_policies: any[];
    /** what is read in the place of a column's values */
    masks: any[];
  };
  /** the last versions */
  versions: {
    /** its number */
    version: number;
    /** what changed it */
    statement: string;
    /** who changed it */
    changed_by: string;
    /** when */
    changed_at: string;
  }[];
}

export interface PostPolicyInput {
  /** only checks, and says what would change */
  dry_run?: boolean;
  body: BodyInit;
  contentType: "text/plain";
}

export interface PostPolicyAnswer {
  /** whether it was only checked */
  dry_run: boolean;
  /** the version of the policy that holds */
  version: number;
  /** what holds beside what held before */
  added: string[];
  /** what holds no more */
  removed: string[];
}

export interface PostPolicyExplainInput {
  body: {
    /** `{database, table}` */
    table: Record<string, any>;
    /** `{subject, role, databases, roles, groups, attributes}` */
    as: Record<string, any>;
  };
}

export interface PostPolicyExplainAnswer {
  /** the version of the policy that holds */
  version: number;
  /** the table's database */
  database: string;
  /** the table */
  table: string;
  /** whether grants decide in the database; otherwise roles alone do */
  governed: boolean;
  /** whether the table is there for the caller */
  visible: boolean;
  /** whether it may add rows, as far as grants say */
  insert: boolean;
  /** whether it may create, replace and drop, as far as grants say */
  modify: boolean;
  /** each column of the table */
  columns: {
    /** its name */
    name: string;
    /** whether it is there */
    visible: boolean;
    /** what is read in its place */
    mask: {
      /** its name */
      name: string;
      /** its condition or expression */
      expression: string;
    } | null;
  }[];
  /** some: those that fulfil one of the conditions */
  rows: "all" | "none" | "some";
  /** the row policies that hold for the caller */
  row_policies: {
    /** its name */
    name: string;
    /** its condition or expression */
    expression: string;
  }[];
  /** the grants to the caller that are about the table */
  grants: string[];
}

export interface PostPolicyTestInput {
  body: {
    /** `{as, sql, rows | row_count | error}` */
    cases: any[];
  };
}

export interface PostPolicyTestAnswer {
  /** whether all cases passed */
  passed: boolean;
  /** each case, in their order */
  cases: {
    /** its name, or its SQL */
    name: string;
    /** whether it passed */
    passed: boolean;
    /** what came instead: `{rows}` or `{error}` */
    found?: Record<string, any>;
  }[];
}

export interface GetQueriesAnswer {
  /** queries that run */
  queries: {
    /** by which it is ended */
    id: number;
    /** whose it is */
    subject: string;
    /** where its bare names resolve */
    default_database: string;
    /** its text, or the beginning of it */
    statement: string;
    /** when it began */
    started_at: string;
    /** about what it holds */
    memory_bytes: number;
  }[];
}

export interface DeleteQueriesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteQueriesIdAnswer {
  /** the query's id */
  cancelled: number;
}

export interface PostQueriesIdCancelInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostQueriesIdCancelAnswer {
  /** the query's id */
  cancelled: number;
}

export interface PostQueryInput {
  /** the form of the rows, instead of `Accept` */
  format?: "ndjson" | "json" | "csv" | "tsv" | "arrow" | "parquet";
  /** where bare names resolve; `*` is no database in particular */
  "X-Database"?: string;
  /** the media type of the rows; NDJSON unless asked otherwise */
  Accept?: string;
  /** less time than the server's limit */
  "X-Querent-Max-Wall-Clock-Ms"?: number;
  /** less memory than the server's limit */
  "X-Querent-Max-Memory-Bytes"?: number;
  /** Arrow: `views`, `dictionaries` or both, which columns may have then; plain types unless asked otherwise */
  "X-Querent-Wire-Types"?: string;
  body: {
    /** the statement */
    sql: string;
    /** values of `$1`, `$2`, ... */
    params?: any[];
    /** where bare names resolve */
    database?: string;
    /** rows after which the answer is cut */
    max_rows?: number;
    /** the form of the rows, instead of `Accept` */
    format?: "ndjson" | "json" | "csv" | "tsv" | "arrow" | "parquet";
  } | BodyInit;
  contentType?: "application/sql" | "application/x-kql";
}

export interface PostQueryAnswer {
  /** the columns */
  columns: {
    /** its name */
    name: string;
    /** its Arrow type */
    type: string;
  }[];
  /** a list of values for each row */
  rows: any[];
  /** rows sent */
  row_count: number;
  /** whether a limit cut the rows */
  truncated: boolean;
}

export interface PostResponsesInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** a text, or items; it may be missing where what is continued has items that ask or decide something */
    input?: string | any[];
    /** `querent`, or a configured model's name */
    model?: string;
    /** whether to answer with server-sent events */
    stream?: boolean;
    /** what the model is told besides */
    instructions?: string;
    /** the response that this one continues */
    previous_response_id?: string;
    /** the conversation; not with `previous_response_id` */
    conversation?: string | Record<string, any>;
    /** keeps the conversation under this id */
    session_id?: string;
    /** whether it can be retrieved; true unless said otherwise */
    store?: boolean;
    /** whether to answer before it is done */
    background?: boolean;
    /** functions that the client executes */
    tools?: any[];
    /** whether a tool must be called */
    tool_choice?: string | Record<string, any>;
    /** false: one call in a turn */
    parallel_tool_calls?: boolean;
    /** calls of the server's tools; 0: none */
    max_tool_calls?: number;
    /** `{format}`: the answer's form, a JSON schema */
    text?: Record<string, any>;
    /** tokens of one turn */
    max_output_tokens?: number;
    /** to the model, 0 to 2 */
    temperature?: number;
    /** to the model, 0 to 1 */
    top_p?: number;
    /** to models that take one, -2 to 2 */
    presence_penalty?: number;
    /** to models that take one, -2 to 2 */
    frequency_penalty?: number;
    /** `{summary}` shows the thinking */
    reasoning?: Record<string, any>;
    /** `{type: compaction, compact_threshold}` */
    context_management?: any[];
    /** up to 16 pairs of texts */
    metadata?: Record<string, any>;
    /** of KsADK's clients: `{thinking}` */
    model_options?: Record<string, any>;
    /** of KsADK's clients: files of the newest message */
    attachments?: any[];
    /** the same */
    current_attachments?: any[];
    /** false: `attachments` are of earlier messages */
    has_current_files?: boolean;
  };
}

export interface PostResponsesCompactInput {
  /** a request that is sent again with the same key and body starts no second run */
  "Idempotency-Key"?: string;
  body: {
    /** `querent`, or a configured model's name */
    model?: string;
    /** a text, or items */
    input?: string | any[];
    /** what the model is told besides */
    instructions?: string;
    /** the response whose conversation is summed up */
    previous_response_id?: string;
  };
}

export interface PostResponsesInputTokensInput {
  body: {
    /** a text, or items; it may be missing where what is continued has items that ask or decide something */
    input?: string | any[];
    /** `querent`, or a configured model's name */
    model?: string;
    /** what the model is told besides */
    instructions?: string;
    /** the response that this one continues */
    previous_response_id?: string;
    /** the conversation; not with `previous_response_id` */
    conversation?: string | Record<string, any>;
    /** keeps the conversation under this id */
    session_id?: string;
    /** functions that the client executes */
    tools?: any[];
    /** whether a tool must be called */
    tool_choice?: string | Record<string, any>;
    /** false: one call in a turn */
    parallel_tool_calls?: boolean;
    /** `{format}`: the answer's form, a JSON schema */
    text?: Record<string, any>;
    /** `{summary}` shows the thinking */
    reasoning?: Record<string, any>;
  };
}

export interface GetResponsesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** whether to answer with server-sent events */
  stream?: boolean;
  /** with `stream`: the last event that was seen */
  starting_after?: number;
  /** what OpenAI's routes may include; what there is, is always included */
  include?: any[];
  /** it has no effect: nothing is obfuscated */
  include_obfuscation?: boolean;
}

export interface PostResponsesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
  body: any;
}

export interface DeleteResponsesIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface PostResponsesIdCancelInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface GetResponsesIdInputItemsInput {
  /** as a listing or an earlier answer names it */
  id: string;
  /** the last item of the page before */
  after?: string;
  /** items of a page */
  limit?: number;
  /** desc, newest first, unless asked otherwise */
  order?: "asc" | "desc";
  /** what OpenAI's routes may include; what there is, is always included */
  include?: any[];
}

export interface PostRestMgmtInput {
  body: {
    /** the database */
    db?: string;
    /** the query or command */
    csl: string;
    /** `{Options, Parameters}`, or that as a text */
    properties?: string | Record<string, any>;
  };
}

export interface PostRestQueryInput {
  body: {
    /** the database */
    db?: string;
    /** the query or command */
    csl: string;
    /** `{Options, Parameters}`, or that as a text */
    properties?: string | Record<string, any>;
  };
}

export interface GetSettingsAnswer {
  /** in the order of the documentation */
  settings: {
    /** its name */
    name: string;
    /** its value; `***` for a secret, empty where it is unset */
    value: string;
    /** `default`, `command line`, `environment NAME` or a file */
    origin: string;
    /** what it is */
    about: string;
    /** whether its value is hidden */
    is_secret: boolean;
  }[];
}

export interface PostSnapshotsExpireInput {
  body: {
    /** how long ago a newer state must have taken its place; at least 3600 */
    older_than_seconds: number;
  };
}

export interface PostSnapshotsExpireAnswer {
  /** states that were forgotten */
  snapshots: number;
  /** dropped tables among them */
  tables: number;
  /** files that only they had */
  files: number;
  /** their bytes */
  bytes: number;
}

export interface GetTokensInput {
  /** entries of a page */
  limit?: number;
  /** `next_page_token` of the page before */
  page_token?: string;
}

export interface GetTokensAnswer {
  /** entries of the page */
  tokens: {
    /** by which it is revoked */
    id: number;
    /** what people call it */
    name: string;
    /** whom it stands for */
    subject: string;
    /** what it may do */
    role: "read" | "write" | "admin";
    /** the only databases that it sees; null for all */
    databases: string[] | null;
    /** roles that policies name */
    roles: string[];
    /** groups that policies name */
    groups: string[];
    /** texts by name, which policies compare with */
    attributes: Record<string, any>;
    /** whether it is accepted */
    state: "active" | "expired" | "revoked";
    /** who created it */
    created_by: string;
    /** when */
    created_at: string;
    /** when it ends */
    expires_at: string | null;
    /** when it was revoked */
    revoked_at: string | null;
  }[];
  /** the next page's `page_token`; absent on the last page */
  next_page_token?: string;
}

export interface PostTokensInput {
  body: {
    /** what people call it */
    name: string;
    /** whom it stands for; the name where it is absent */
    subject?: string;
    /** what it may do */
    role: "read" | "write" | "admin";
    /** the only databases that it sees */
    databases?: any[];
    /** roles that policies name */
    roles?: any[];
    /** groups that policies name */
    groups?: any[];
    /** texts by name, which policies compare with */
    attributes?: Record<string, any>;
    /** when it ends, as in 2027-01-31T00:00:00Z */
    expires_at?: string;
  };
}

export interface PostTokensAnswer {
  /** by which it is revoked */
  id: number;
  /** what people call it */
  name: string;
  /** whom it stands for */
  subject: string;
  /** what it may do */
  role: "read" | "write" | "admin";
  /** the only databases that it sees; null for all */
  databases: string[] | null;
  /** roles that policies name */
  roles: string[];
  /** groups that policies name */
  groups: string[];
  /** texts by name, which policies compare with */
  attributes: Record<string, any>;
  /** whether it is accepted */
  state: "active" | "expired" | "revoked";
  /** who created it */
  created_by: string;
  /** when */
  created_at: string;
  /** when it ends */
  expires_at: string | null;
  /** when it was revoked */
  revoked_at: string | null;
  /** the token itself */
  token: string;
}

export interface DeleteTokensIdInput {
  /** as a listing or an earlier answer names it */
  id: string;
}

export interface DeleteTokensIdAnswer {
  /** the token's id */
  revoked: number;
}

export interface PostV2RestQueryInput {
  body: {
    /** the database */
    db?: string;
    /** the query or command */
    csl: string;
    /** `{Options, Parameters}`, or that as a text */
    properties?: string | Record<string, any>;
  };
}
