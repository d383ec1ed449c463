import { after, before } from 'node:test';
import { type Postgresql, startPostgresql } from '../../../../test/fixtures/postgresql.ts';
import { stateStoreContract } from './state-store-contract.ts';

let server: Postgresql;
before(async () => {
  server = await startPostgresql();
});
after(() => server.stop());

stateStoreContract('PostgreSQL', () => server.createDatabase());
