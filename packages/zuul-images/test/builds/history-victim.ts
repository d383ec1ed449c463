/** Remembers one build after the other in a file until it is killed, and says so after each: `history-victim.ts FILE`. */
import { ProcessedBuilds } from '../../src/builds/processed-builds.ts';

const seen = await ProcessedBuilds.open(process.argv[2] ?? '');
for (let id = (seen.history.newest?.id ?? 0) + 1; ; id += 1) {
  const build = { uuid: `build-${id}`, id, endTime: id * 1000, pipeline: 'periodic', content: [] };
  await seen.taken({ same: [build], passedOver: [] });
  console.log(id);
}
