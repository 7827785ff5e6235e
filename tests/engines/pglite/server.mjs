// A real Apache AGE: Postgres in WebAssembly, in memory, behind the Postgres wire on loopback.
// It prints its port when it is ready, and ends when whoever started it closes its standard input.
import { PGlite } from '@electric-sql/pglite'
import { age } from '@electric-sql/pglite-age'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

process.stdin.resume()
process.stdin.on('end', () => process.exit(0))

const db = await PGlite.create({ extensions: { age } })
if (process.argv[2] !== 'bare') await db.exec('CREATE EXTENSION age')

// Statements run one at a time, all in the one session that there is. A client is to have it to
// itself; the second place is for one that comes while the last one is still leaving.
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 2 })
server.addEventListener('connection', () => db.exec('DISCARD ALL'))
await server.start()
// A client that says goodbye waits until the server hangs up.
server.server.prependListener('connection', (socket) =>
  socket.on('data', (data) => {
    if (data.length === 5 && data[0] === 0x58) socket.end()
  }),
)
console.log(server.getServerConn().split(':').at(-1))
