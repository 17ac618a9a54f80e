// A client of Cube's chat API as people write it with fetch: each chunk is taken apart at its line ends, and nothing is
// kept for the next.
import assert from 'node:assert'

const [url, key] = process.argv.slice(3)
const headers = { 'Content-Type': 'application/json', Authorization: `Api-Key ${key}` }
const sessionSettings = { externalId: 'user@example.com', userAttributes: [{ name: 'city', value: 'San Francisco' }] }
const response = await fetch(url, {
  method: 'POST',
  headers,
  body: JSON.stringify({ input: 'tools, please', sessionSettings })
})
assert.equal(response.status, 200)
const messages = []
const reader = response.body.getReader()
const decoder = new TextDecoder()
for (;;) {
  const { done, value } = await reader.read()
  if (done) break
  for (const line of decoder.decode(value).trim().split('\n')) {
    if (line) messages.push(JSON.parse(line))
  }
}
const final = messages.filter(
  (message) =>
    message.role === 'assistant' && Array.isArray(message.graphPath) && message.graphPath[0] === 'final' && message.graphPath.length <= 2
)
assert.equal(final.at(-1).content, 'It is 1.')
const results = messages.filter((message) => message.toolCall?.result).map((message) => JSON.parse(message.toolCall.result))
assert.deepEqual(results[0].data, [['1', 'a', null]])
console.log('content', final.at(-1).content)

const chatId = messages.find((message) => message.id === '__cutoff__').state.chatId
const aborted = await fetch(url.replace(/\/stream-chat-state$/, '/abort'), {
  method: 'POST',
  headers,
  body: JSON.stringify({ chatId, sessionSettings })
})
assert.equal(aborted.status, 204)
