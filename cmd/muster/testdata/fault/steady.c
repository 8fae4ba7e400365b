/* Passes a token around a ring of ranks for as many seconds as asked, and says
 * at the end whether each round brought the right number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, go = 1, bad = 0;
    long rounds = 0;
    double until;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    until = MPI_Wtime() + (argc > 1 ? atof(argv[1]) : 10);
    while (go) {
        long token = rounds * size;
        if (rank == 0) {
            MPI_Send(&token, 1, MPI_LONG, 1 % size, 0, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_LONG, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bad |= token != rounds * size + size - 1;
            go = MPI_Wtime() < until;
        } else {
            MPI_Recv(&token, 1, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token++;
            MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, 0, MPI_COMM_WORLD);
        }
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        rounds++;
    }
    if (rank == 0)
        printf("steady: %d ranks, %ld rounds: %s\n", size, rounds, bad ? "broken" : "ok");
    MPI_Finalize();
    return bad;
}
