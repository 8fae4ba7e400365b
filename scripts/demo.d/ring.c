/* A number goes once around a ring of ranks; rank 0 says on how many nodes. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, token, length, nodes = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);

    if (rank == 0) {
        token = 1;
        if (size > 1) {
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else {
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    }

    char all[256][MPI_MAX_PROCESSOR_NAME];
    if (size > 256)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(name, sizeof name, MPI_CHAR, all, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < size; i++) {
            int seen = 0;
            for (int j = 0; j < i; j++)
                seen |= strcmp(all[i], all[j]) == 0;
            nodes += !seen;
        }
        printf("ring: %d ranks on %d nodes: %s\n", size, nodes, token == size ? "ok" : "broken");
    }
    MPI_Finalize();
    return 0;
}
