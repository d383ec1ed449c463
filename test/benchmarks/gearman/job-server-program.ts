/** This project's job server, in a process of its own. Answers each line with its port, and ends with its input. */
import { createInterface } from 'node:readline';
import { JobServer } from '@nodepool-builder/gearman-node';

const server = new JobServer();
const { port } = await server.listen(0);
for await (const _ of createInterface(process.stdin)) console.log(port);
await server.close();
