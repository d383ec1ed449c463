/** Remembers one build after the other in a file until it is killed, and says so after each: `memory-victim.ts FILE`. */
import { SeenBuilds } from '../../src/builds/seen-builds.ts';

const seen = await SeenBuilds.open(process.argv[2] ?? '');
for (let id = (seen.memory.newest?.id ?? 0) + 1; ; id += 1) {
  const build = { uuid: `build-${id}`, id, endTime: id * 1000, pipeline: 'periodic', content: [] };
  await seen.taken({ same: [build], passedOver: [] });
  console.log(id);
}
